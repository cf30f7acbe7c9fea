import { z } from "zod";
import { defineRequest } from "../envelope.ts";
import {
  Delivery,
  DeliveryAttempt,
  DeliveryStatus,
  DeviceNotification,
  Notification,
  notificationFilterQuery,
} from "../http/v1/notifications.ts";
import { isDeepPage, KeysetRequest, keysetPageOf, ListRequest, PageRequest, pageOf } from "../http/v1/pagination.ts";
import { TestedPush, TestPush } from "../http/v1/provider-test.ts";
import { ProviderView, VapidKey, VapidKeyPair } from "../http/v1/providers.ts";
import { DeviceId, NotificationId, ProjectId } from "../ids.ts";
import { Provider } from "../platforms.ts";
import { UserId } from "../users.ts";
import { VapidKeyId } from "../vapid.ts";

const project = { projectId: ProjectId };
const notification = { ...project, notificationId: NotificationId };

/** Notifications without opens: `counts.opened` is 0; analytics has it. */
export const ListNotifications = defineRequest(
  "dispatch.notifications.list" /** `userId`: notifications that name this user as a target. */,
  z.object({ ...project, ...notificationFilterQuery, page: ListRequest, userId: UserId.optional() }),
  pageOf(Notification),
  isDeepPage,
);
export const GetNotification = defineRequest("dispatch.notifications.get", z.object(notification), Notification);
export const CancelNotification = defineRequest("dispatch.notifications.cancel", z.object(notification), Notification);
/** One row per device; `opened_at` is absent here, analytics has it. */
export const ListDeliveries = defineRequest(
  "dispatch.deliveries.list",
  z.object({ ...notification, status: DeliveryStatus.optional(), page: PageRequest }),
  pageOf(Delivery),
  isDeepPage,
);

/** What was sent to a device, newest first; `opened_at` is absent here, analytics has it. A page may be short, and still have a `next`. */
export const ListDeviceNotifications = defineRequest(
  "dispatch.deliveries.of-device",
  z.object({ ...project, deviceId: DeviceId, page: KeysetRequest }),
  keysetPageOf(DeviceNotification),
);

/** The ledger's part of a delivery trace: the attempts of one device, oldest first; none if it is in no batch. */
export const GetDeliveryTrace = defineRequest(
  "dispatch.deliveries.trace",
  z.object({ ...notification, deviceId: DeviceId }),
  z.object({
    notification: Notification,
    /** Whether expansion is complete. Before that, a device without attempts may still get some. */
    expanded: z.boolean(),
    delivery: Delivery.optional(),
    attempts: z.array(DeliveryAttempt),
    nextAttemptAt: z.iso.datetime().optional(),
  }),
);

/** How many small sends of a project wait in its backlog, counted up to `limit`. */
export const CountBacklog = defineRequest(
  "dispatch.backlog.count",
  z.object({ ...project, limit: z.number().int().min(1).max(1_000_000_000) }),
  z.object({ queued: z.number().int().min(0) }),
);

/** Whether replaying a dead letter would change anything. `settled` says why not: deliveries that ended stay ended. */
export const JudgeReplay = defineRequest(
  "dispatch.replays.judge",
  z.object({
    ...notification,
    message: z.enum(["SendV1", "DeliverBatchV1", "DueV1"]),
    /** For messages about a batch. */
    batchId: z.string().optional(),
  }),
  z.object({ settled: z.string().optional() }),
);

const provider = { ...project, provider: Provider };
/** The settings of a request. Dispatch checks that the keys parse. */
export const PutProvider = defineRequest(
  "dispatch.providers.put",
  z.object({ ...provider, settings: z.unknown() }),
  ProviderView,
);
export const GetProvider = defineRequest("dispatch.providers.get", z.object(provider), ProviderView);
export const DeleteProvider = defineRequest("dispatch.providers.delete", z.object(provider), z.object({}));

/** Sends one push with the project's settings; `push` fits the provider. */
export const TestProvider = defineRequest(
  "dispatch.providers.test",
  z.object({ ...provider, push: TestPush }),
  TestedPush,
);

/** A Web Push key without its number of devices, which registry has. */
const HeldVapidKey = VapidKey.omit({ devices: true });
const vapidKey = { ...project, keyId: VapidKeyId };

/** `unnamed`: the key that signs for subscriptions without a key id, or with a key that Herald never had. */
export const ListVapidKeys = defineRequest(
  "dispatch.vapid-keys.list",
  z.object(project),
  z.object({ keys: z.array(HeldVapidKey), retired: z.array(VapidKeyId), unnamed: VapidKeyId }),
);
/** Stages the next key: the given pair or a new one. Without a pair, answers a key that is already staged. */
export const StageVapidKey = defineRequest(
  "dispatch.vapid-keys.stage",
  z.object({ ...project, pair: VapidKeyPair.optional() }),
  z.object({ key: HeldVapidKey, created: z.boolean() }),
);
export const PromoteVapidKey = defineRequest("dispatch.vapid-keys.promote", z.object(vapidKey), HeldVapidKey);
/** Deletes the private key. The caller has checked that no subscription uses it, or was told to force it. */
export const RetireVapidKey = defineRequest("dispatch.vapid-keys.retire", z.object(vapidKey), z.object({}));
