import { z } from "zod";
import { type DataOf, defineMessage } from "./envelope.ts";
import { NotificationContent } from "./http/v1/notification-content.ts";
import { bucketCount, DeviceId, maxGroupSize, NotificationId, ProjectId } from "./ids.ts";
import { isPlainRecipient, plainBatch } from "./plain-batch.ts";
import { ApnsEnvironment, FcmTokenKind, Lane, Platform, WebPushKeys } from "./platforms.ts";

const time = z.iso.datetime();

/** Accepted by the gateway: dispatch inserts it under its id and has it expanded. */
export const SendV1 = defineMessage(
  "SendV1",
  "push.cmd.v1.dispatch.send.:projectId.:notificationId",
  z.object({
    projectId: ProjectId,
    notificationId: NotificationId,
    content: NotificationContent,
    acceptedAt: time,
    /** When it is to be sent; absent or past: now. */
    sendAt: time.optional(),
    /** No chunk starts after this. */
    expiresAt: time,
  }),
);
export type SendV1 = DataOf<typeof SendV1>;

/** A send of a group, with what correlates it: a group belongs to many requests. */
export const GroupedSend = SendV1.schema.extend({
  origin: z.object({ requestId: z.string().optional(), traceparent: z.string().optional() }).optional(),
});
export type GroupedSend = z.output<typeof GroupedSend>;

/**
 * Sends to few devices each that were accepted in the same moment, of any projects: one message, because an fsynced message costs the
 * broker as much as all that is in it. `groupId` is what {@link sendGroupOf} says of each of its notifications.
 */
export const SendGroupV1 = defineMessage(
  "SendGroupV1",
  "push.send.v1.group.:groupId",
  z.object({ groupId: NotificationId, sends: z.array(GroupedSend).min(1).max(maxGroupSize) }),
);
export type SendGroupV1 = DataOf<typeof SendGroupV1>;

/**
 * A send to few devices whose group may have been published before: somebody repeats its request, and nobody knows how far the first try
 * came. It travels alone, since its group's message may still be there and hold others.
 */
export const SendOneV1 = defineMessage("SendOneV1", "push.send.v1.one.:notificationId", GroupedSend);
export type SendOneV1 = DataOf<typeof SendOneV1>;

/**
 * A project has small sends that wait in the ledger. Its subject holds one message, so one process at a time sends them, in their order,
 * and whoever publishes it again while it is there is refused.
 */
export const DrainBacklogV1 = defineMessage(
  "DrainBacklogV1",
  "push.drain.v1.:projectId",
  z.object({ projectId: ProjectId }),
);
export type DrainBacklogV1 = DataOf<typeof DrainBacklogV1>;

/** One page of a notification's audience: the active devices of the buckets `fromBucket` to `toBucket`, both included. */
export const ExpandV1 = defineMessage(
  "ExpandV1",
  "push.cmd.v1.registry.expand.:projectId.:notificationId.:page",
  z.object({
    projectId: ProjectId,
    notificationId: NotificationId,
    page: z.number().int().min(0),
    fromBucket: z
      .number()
      .int()
      .min(0)
      .max(bucketCount - 1),
    /** Absent on the first page: registry chooses the width by the audience's size, and every later page has it. */
    toBucket: z
      .number()
      .int()
      .min(0)
      .max(bucketCount - 1)
      .optional(),
    targets: z.array(z.string()).min(1),
    lane: Lane,
    expiresAt: time,
  }),
);
export type ExpandV1 = DataOf<typeof ExpandV1>;

/** Every page is partitioned: how many root batches there are, and how many devices are in them. */
export const ExpandedV1 = defineMessage(
  "ExpandedV1",
  "push.cmd.v1.dispatch.expanded.:projectId.:notificationId",
  z.object({
    projectId: ProjectId,
    notificationId: NotificationId,
    batches: z.number().int().min(0),
    devices: z.number().int().min(0),
    /** Targets that matched no active device, as they were sent. */
    unmatched: z.array(z.string()),
  }),
);
export type ExpandedV1 = DataOf<typeof ExpandedV1>;

/** A device as a delivery carries it: where to send, and which registration a verdict would be about. */
export const Recipient = z.object({
  id: DeviceId,
  token: z.string(),
  /** Milliseconds since 1970 of the registration that gave the token. */
  tokenAt: z.number().int(),
  environment: ApnsEnvironment.optional(),
  tokenKind: FcmTokenKind.optional(),
  keys: WebPushKeys.optional(),
  /** The id of the VAPID key that the subscription was made with. */
  vapidKeyId: z.string().optional(),
  /** Whose it was when the audience was read; absent: nobody's. */
  userId: z.string().optional(),
  /** `identifiers.current_locale`, which chooses among the localizations. */
  locale: z.string().optional(),
});
export type Recipient = z.infer<typeof Recipient>;

const deliverBatch = z.object({
  /** `<notification>/<page>/<n>`. */
  batchId: z.string(),
  projectId: ProjectId,
  notificationId: NotificationId,
  lane: Lane,
  platform: Platform,
  devices: z.array(Recipient),
});

const batches = defineMessage(
  "DeliverBatchV1",
  "push.deliver.v1.:lane.:platform.:projectId",
  deliverBatch,
  plainBatch(deliverBatch, (device) => isPlainRecipient(Recipient, device)),
);

/**
 * Which of a project's queues for a platform a batch is in; empty where there is one. What is sent to single devices has 32, by the
 * last character of the notification: a queue holds eight batches, which is plenty where each has hundreds of devices and far too
 * few where each has one.
 */
export const deliveryLine = ({ lane, notificationId }: { lane: Lane; notificationId: NotificationId }): string =>
  lane === "direct" ? notificationId.slice(-1) : "";

/** At most 1,000 devices and 512 KiB of one platform, sorted by id. The content is read from the ledger. */
export const DeliverBatchV1: typeof batches = {
  ...batches,
  filter: "push.deliver.v1.>",
  subject: (batch) => {
    const line = deliveryLine(batch);
    return line === "" ? batches.subject(batch) : `${batches.subject(batch)}.${line}`;
  },
};
export type DeliverBatchV1 = DataOf<typeof DeliverBatchV1>;

/** A batch is a message, a ledger row and an event: twice the devices are half of what all of these cost. */
export const batchLimits = { devices: 1_000, bytes: 524_288 } as const;

/** A stored batch whose time has come. `key` is the batch id as one token of a subject. */
export const DueV1 = defineMessage(
  "DueV1",
  "push.due.v1.:kind.:projectId.:key",
  z.object({
    kind: z.enum(["batch", "notification"]),
    projectId: ProjectId,
    key: z.string(),
    /** The batch's or the notification's id. */
    id: z.string(),
  }),
);
export type DueV1 = DataOf<typeof DueV1>;

const openGroup = z.object({
  projectId: ProjectId,
  opens: z
    .array(
      z.object({
        notificationId: NotificationId,
        deviceId: DeviceId,
        /** Absent: the open token is of version 1, which did not say it. */
        platform: Platform.optional(),
        openedAt: time,
      }),
    )
    .min(1)
    .max(100),
});

/** Verified opens of one project that arrived within a few milliseconds of each other. */
export const OpenGroupV1 = defineMessage("OpenGroupV1", "push.opens.v1.:projectId", openGroup);
export type OpenGroupV1 = DataOf<typeof OpenGroupV1>;

/** The same as a command beside the sends. Earlier versions of the gateway publish it; this one does not. */
export const OpensV1 = defineMessage("OpensV1", "push.cmd.v1.analytics.opens.:projectId", openGroup);
export type OpensV1 = DataOf<typeof OpensV1>;
