import { z } from "zod";
import { ActivityId } from "../activity-push.ts";
import { defineRequests, listRequest, oneRequest } from "../envelope.ts";
import { DecideNotification } from "../http/v1/approval.ts";
import { ChangeNotification } from "../http/v1/change-notification.ts";
import {
  Delivery,
  DeliveryAttempt,
  DeliveryListQuery,
  DeliveryStatus,
  DeviceNotification,
} from "../http/v1/deliveries.ts";
import { Notification, NotificationListQuery, notificationFilterQuery } from "../http/v1/notifications.ts";
import { KeysetQuery, timeRange } from "../http/v1/pagination.ts";
import { Pause } from "../http/v1/pause.ts";
import { TestedPush, TestPush } from "../http/v1/provider-test.ts";
import { ProviderView, VapidKey, VapidKeyPair } from "../http/v1/providers.ts";
import { Author } from "../http/v1/templates.ts";
import { DeviceId, NotificationId, ProjectId } from "../ids.ts";
import { ApnsEnvironment, AppId, Provider } from "../platforms.ts";
import { UserId } from "../users.ts";
import { VapidKeyId } from "../vapid.ts";
import { exportRequest } from "./export-request.ts";

const project = { projectId: ProjectId };
const notification = { ...project, notificationId: NotificationId };

const provider = { ...project, provider: Provider };

/** A Web Push key without its number of devices, which only registry knows. */
const StoredVapidKey = VapidKey.omit({ devices: true });
const vapidKey = { ...project, keyId: VapidKeyId };

export const notificationRequests = defineRequests("dispatch.notifications", {
  /**
   * Notifications without opens: `counts.opened` is 0, because analytics has the opens. `userId`: notifications that name this user as a
   * target. Heavy: a hundred notifications may have 6 MB of content.
   */
  list: listRequest({ ...project, userId: UserId.optional() }, Notification, NotificationListQuery, () => true),
  get: oneRequest(notification, Notification),
  cancel: oneRequest(notification, Notification),
  pause: oneRequest({ ...notification, ...Pause.pick({ reason: true }).shape, by: Author }, Notification),
  resume: oneRequest({ ...notification, by: Author }, Notification),
  /** Sends a proposed notification. Throws `audience-grew` when it reaches many more devices than its proposal says; the next call approves that. */
  approve: oneRequest({ ...notification, ...DecideNotification.shape, by: Author }, Notification),
  reject: oneRequest({ ...notification, ...DecideNotification.shape, by: Author }, Notification),
  /** Changes when a notification is sent that has not begun. `zone`: the default time zone of its project; absent: UTC. */
  change: oneRequest(
    { ...notification, change: ChangeNotification.shape.notification, zone: z.string().optional() },
    Notification,
  ),
  /** Rows are `Notification` without opens, as in `ListNotifications`. */
  export: exportRequest({ ...notificationFilterQuery, ...timeRange }),
});

export const deliveryRequests = defineRequests("dispatch.deliveries", {
  /** One row per device. `opened_at` is absent: analytics has it. */
  list: listRequest(notification, Delivery, DeliveryListQuery),
  /** Notifications sent to a device, newest first. `opened_at` is absent: analytics has it. A short page may still have a `next`. */
  ofDevice: listRequest({ ...project, deviceId: DeviceId }, DeviceNotification, KeysetQuery),
  /** The ledger's part of a delivery trace: the attempts of one device, oldest first; none if no batch contains it. */
  trace: oneRequest(
    { ...notification, deviceId: DeviceId },
    z.object({
      notification: Notification,
      /** Whether expansion is complete. Before that, a device without attempts may still get some. */
      expanded: z.boolean(),
      delivery: Delivery.optional(),
      attempts: z.array(DeliveryAttempt),
      nextAttemptAt: z.iso.datetime().optional(),
    }),
  ),
  /** Rows are `ExportedDelivery`. */
  export: exportRequest({ ...timeRange, notificationId: NotificationId.optional(), status: DeliveryStatus.optional() }),
  /** The user of each device when its notification was sent, in the order of the request. Null: no user, or a large audience. */
  users: oneRequest(
    {
      ...project,
      deliveries: z
        .array(z.object({ notificationId: NotificationId, deviceId: DeviceId }))
        .min(1)
        .max(1000),
      /** Of these notifications, the ids of the buttons. */
      buttonsOf: z.array(NotificationId).optional(),
    },
    z.object({
      users: z.array(z.string().nullable()),
      /** {@link Tag}s by notification; absent for notifications without tags. */
      tags: z.record(z.string(), z.array(z.string())).optional(),
      /** By notification; absent for notifications without buttons. */
      buttons: z.record(z.string(), z.array(z.string())).optional(),
    }),
  ),
});

export const activityRequests = defineRequests("dispatch.activities", {
  /** The channel of an activity for the devices of an app and environment (absent: the settings'). Made if there is none; absent: there can be none. */
  channel: oneRequest(
    { ...project, activityId: ActivityId, app: AppId.optional(), environment: ApnsEnvironment.optional() },
    z.object({ id: z.string().optional() }),
  ),
});

export const backlogRequests = defineRequests("dispatch.backlog", {
  /** The number of small sends of a project in its backlog, counted up to `limit`. */
  count: oneRequest(
    { ...project, limit: z.number().int().min(1).max(1_000_000_000) },
    z.object({ queued: z.number().int().min(0) }),
  ),
});

export const erasureRequests = defineRequests("dispatch.users", {
  /**
   * Devices of a user who is being erased, and their push tokens: what was sent to them until `at` is erased too. Registry asks before it
   * deletes them, because it is not known afterwards whose they were. `key`: the user's `userKey`. Repeatable.
   */
  eraseDevices: oneRequest(
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
  ),
});

export const replayRequests = defineRequests("dispatch.replays", {
  /** Whether replaying a dead letter would change anything. If not, `settled` is the reason: ended deliveries stay ended. */
  check: oneRequest(
    {
      ...notification,
      message: z.enum(["SendV1", "DeliverBatchV1", "DueV1"]),
      /** For messages about a batch. */
      batchId: z.string().optional(),
    },
    z.object({ settled: z.string().optional() }),
  ),
});

export const providerRequests = defineRequests("dispatch.providers", {
  /** The settings as in the HTTP request. Dispatch checks that the keys parse. */
  put: oneRequest({ ...provider, settings: z.unknown() }, ProviderView),
  get: oneRequest(provider, ProviderView),
  delete: oneRequest(provider, z.object({})),
  /** Sends one push with the project's settings. `push` must fit the provider. */
  test: oneRequest({ ...provider, push: TestPush }, TestedPush),
});

export const vapidKeyRequests = defineRequests("dispatch.vapid-keys", {
  /** `unnamed`: the key that signs for subscriptions without a key id, or with a key that Herald never had. */
  list: oneRequest(
    project,
    z.object({ keys: z.array(StoredVapidKey), retired: z.array(VapidKeyId), unnamed: VapidKeyId }),
  ),
  /** Stages the next key: the given pair or a new one. Without a pair, returns a key that is already staged. */
  stage: oneRequest(
    { ...project, pair: VapidKeyPair.optional() },
    z.object({ key: StoredVapidKey, created: z.boolean() }),
  ),
  promote: oneRequest(vapidKey, StoredVapidKey),
  /** Deletes the private key. The caller must check that no subscription uses it, unless its request forces the deletion. */
  retire: oneRequest(vapidKey, z.object({})),
});
