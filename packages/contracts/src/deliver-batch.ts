import { z } from "zod";
import { type DataOf, defineMessage } from "./envelope.ts";
import { DeviceId, NotificationId, ProjectId } from "./ids.ts";
import { isPlainRecipient, plainBatch } from "./plain-batch.ts";
import {
  ApnsEnvironment,
  AppId,
  FcmTokenKind,
  Lane,
  Platform,
  Provider,
  platformOf,
  type Served,
  servingProvider,
  WebPushKeys,
} from "./platforms.ts";

/** A device in a batch: its address, and the registration to which a token refusal would apply. */
export const Recipient = z.object({
  id: DeviceId,
  token: z.string(),
  /** Milliseconds since 1970 of the registration that gave the token. */
  tokenAt: z.number().int(),
  environment: ApnsEnvironment.optional(),
  /** Absent: the app of the provider's settings. */
  app: AppId.optional(),
  tokenKind: FcmTokenKind.optional(),
  keys: WebPushKeys.optional(),
  /** The id of the subscription's VAPID key. */
  vapidKeyId: z.string().optional(),
  /** The token of a Live Activity that FCM passes to APNs, beside the device's own in `token`. */
  liveToken: z.string().optional(),
  /** A start may name a broadcast channel. */
  channels: z.literal(true).optional(),
  /** No device, but all that follow the channel with this id, `token`. It is in no batch. */
  broadcast: z.literal(true).optional(),
  /** The user of the device when the audience was read; absent: none. */
  userId: z.string().optional(),
  /** `identifiers.current_locale`, which selects the localization. */
  locale: z.string().optional(),
  /** The values of its texts; absent: they are the same for all devices. */
  values: z.record(z.string(), z.unknown()).optional(),
  /** What its app's kit can do, see `Capabilities`; absent: nothing. */
  capabilities: z.string().optional(),
  /** With {@link AskedRules}: a choice, or the default of the kind, is against the push. */
  off: z.literal(true).optional(),
  /** The canonical name of its time zone, if it was asked for; absent: none, so that of the project. */
  zone: z.string().optional(),
  /** With {@link AskedRules}: the quiet hours of its user, such as `22:00-07:00`; absent: none. */
  quiet: z.string().optional(),
});
export type Recipient = z.infer<typeof Recipient>;

const deliverBatch = z.object({
  /** `<notification>/<page>/<n>`. */
  batchId: z.string(),
  projectId: ProjectId,
  notificationId: NotificationId,
  lane: Lane,
  platform: Platform,
  /** Absent: the platform's own. */
  provider: Provider.optional(),
  /** No chunk starts after this. Absent: the notification's `expiresAt`. */
  expiresAt: z.iso.datetime().optional(),
  /** Nothing is sent to its devices, for this reason. */
  skip: z.string().optional(),
  devices: z.array(Recipient),
});

const batches = defineMessage(
  "DeliverBatchV1",
  "push.deliver.v1.:lane.:platform.:projectId",
  deliverBatch,
  plainBatch(deliverBatch, (device) => isPlainRecipient(Recipient, device)),
);

/**
 * A batch's queue among a project's queues for a platform; empty if there is only one. Direct sends have 32 queues, by the last character
 * of the notification id: a queue holds eight batches, too few when each has a single device.
 */
export const deliveryLine = ({ lane, notificationId }: { lane: Lane; notificationId: NotificationId }): string =>
  lane === "direct" ? notificationId.slice(-1) : "";

/**
 * The platform in a batch's subject, which names the queue. Batches share the queue of their provider, because a slow or paused provider
 * holds up its queue.
 */
export const deliveryQueue = (batch: Served): Platform => platformOf[servingProvider(batch)];

/** At most 1,000 devices of one platform and provider and 512 KiB, sorted by id. Dispatch reads the content from the ledger. */
export const DeliverBatchV1: typeof batches = {
  ...batches,
  filter: "push.deliver.v1.>",
  subject: (batch) => {
    const line = deliveryLine(batch);
    const subject = batches.subject({ ...batch, platform: deliveryQueue(batch) });
    return line === "" ? subject : `${subject}.${line}`;
  },
};
export type DeliverBatchV1 = DataOf<typeof DeliverBatchV1>;

/** Each batch costs a message, a ledger row and an event, whatever its size. */
export const batchLimits = { devices: 1_000, bytes: 524_288 } as const;
