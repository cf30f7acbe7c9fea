import { z } from "zod";
import { defineList, defineRequest } from "../envelope.ts";
import { Delivery, DeliveryAttempt, DeliveryListQuery, DeviceNotification } from "../http/v1/deliveries.ts";
import { ChangeNotification } from "../http/v1/local-time.ts";
import { Notification, NotificationListQuery } from "../http/v1/notifications.ts";
import { KeysetQuery } from "../http/v1/pagination.ts";
import { TestedPush, TestPush } from "../http/v1/provider-test.ts";
import { ProviderView, VapidKey, VapidKeyPair } from "../http/v1/providers.ts";
import { DeviceId, NotificationId, ProjectId } from "../ids.ts";
import { Provider } from "../platforms.ts";
import { UserId } from "../users.ts";
import { VapidKeyId } from "../vapid.ts";

const project = { projectId: ProjectId };
const notification = { ...project, notificationId: NotificationId };

/**
 * Notifications without opens: `counts.opened` is 0, because analytics has the opens. `userId`: notifications that name this user as a
 * target. Heavy: a hundred notifications may have 6 MB of content.
 */
export const ListNotifications = defineList(
  "dispatch.notifications.list",
  { ...project, userId: UserId.optional() },
  Notification,
  NotificationListQuery,
  () => true,
);
export const GetNotification = defineRequest("dispatch.notifications.get", notification, Notification);
export const CancelNotification = defineRequest("dispatch.notifications.cancel", notification, Notification);
/** Changes when a notification is sent that has not begun. `zone`: the default time zone of its project; absent: UTC. */
export const ChangeNotificationRequest = defineRequest(
  "dispatch.notifications.change",
  { ...notification, change: ChangeNotification.shape.notification, zone: z.string().optional() },
  Notification,
);
/** One row per device. `opened_at` is absent: analytics has it. */
export const ListDeliveries = defineList("dispatch.deliveries.list", notification, Delivery, DeliveryListQuery);

/** Notifications sent to a device, newest first. `opened_at` is absent: analytics has it. A short page may still have a `next`. */
export const ListDeviceNotifications = defineList(
  "dispatch.deliveries.of-device",
  { ...project, deviceId: DeviceId },
  DeviceNotification,
  KeysetQuery,
);

/** The ledger's part of a delivery trace: the attempts of one device, oldest first; none if no batch contains it. */
export const GetDeliveryTrace = defineRequest(
  "dispatch.deliveries.trace",
  { ...notification, deviceId: DeviceId },
  z.object({
    notification: Notification,
    /** Whether expansion is complete. Before that, a device without attempts may still get some. */
    expanded: z.boolean(),
    delivery: Delivery.optional(),
    attempts: z.array(DeliveryAttempt),
    nextAttemptAt: z.iso.datetime().optional(),
  }),
);

/** The number of small sends of a project in its backlog, counted up to `limit`. */
export const CountBacklog = defineRequest(
  "dispatch.backlog.count",
  { ...project, limit: z.number().int().min(1).max(1_000_000_000) },
  z.object({ queued: z.number().int().min(0) }),
);

/**
 * Devices of a user who is being erased, and their push tokens: what was sent to them until `at` is erased too. Registry asks before it
 * deletes them, because it is not known afterwards whose they were. `key`: the user's `userKey`. Repeatable.
 */
export const EraseDevices = defineRequest(
  "dispatch.users.erase-devices",
  {
    ...project,
    key: z.string(),
    at: z.iso.datetime(),
    devices: z
      .array(z.object({ id: DeviceId, token: z.string() }))
      .min(1)
      .max(500),
  },
  z.object({}),
);

/** Whether replaying a dead letter would change anything. If not, `settled` is the reason: ended deliveries stay ended. */
export const CheckReplay = defineRequest(
  "dispatch.replays.check",
  {
    ...notification,
    message: z.enum(["SendV1", "DeliverBatchV1", "DueV1"]),
    /** For messages about a batch. */
    batchId: z.string().optional(),
  },
  z.object({ settled: z.string().optional() }),
);

const provider = { ...project, provider: Provider };
/** The settings as in the HTTP request. Dispatch checks that the keys parse. */
export const PutProvider = defineRequest(
  "dispatch.providers.put",
  { ...provider, settings: z.unknown() },
  ProviderView,
);
export const GetProvider = defineRequest("dispatch.providers.get", provider, ProviderView);
export const DeleteProvider = defineRequest("dispatch.providers.delete", provider, z.object({}));

/** Sends one push with the project's settings. `push` must fit the provider. */
export const TestProvider = defineRequest("dispatch.providers.test", { ...provider, push: TestPush }, TestedPush);

/** A Web Push key without its number of devices, which only registry knows. */
const StoredVapidKey = VapidKey.omit({ devices: true });
const vapidKey = { ...project, keyId: VapidKeyId };

/** `unnamed`: the key that signs for subscriptions without a key id, or with a key that Herald never had. */
export const ListVapidKeys = defineRequest(
  "dispatch.vapid-keys.list",
  project,
  z.object({ keys: z.array(StoredVapidKey), retired: z.array(VapidKeyId), unnamed: VapidKeyId }),
);
/** Stages the next key: the given pair or a new one. Without a pair, returns a key that is already staged. */
export const StageVapidKey = defineRequest(
  "dispatch.vapid-keys.stage",
  { ...project, pair: VapidKeyPair.optional() },
  z.object({ key: StoredVapidKey, created: z.boolean() }),
);
export const PromoteVapidKey = defineRequest("dispatch.vapid-keys.promote", vapidKey, StoredVapidKey);
/** Deletes the private key. The caller must check that no subscription uses it, unless its request forces the deletion. */
export const RetireVapidKey = defineRequest("dispatch.vapid-keys.retire", vapidKey, z.object({}));
