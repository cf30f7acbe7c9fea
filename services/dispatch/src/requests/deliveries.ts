import { type Bus, handleRequest, type RequestListener } from "@herald/bus";
import {
  ExportDeliveries,
  GetDeliveryTrace,
  ListDeliveries,
  ListDeviceNotifications,
  type NotificationId,
  type ProjectId,
  UsersOfDeliveries,
} from "@herald/contracts";
import type { DeliveryExport } from "../stores/delivery-export.ts";
import type { DeliveryList } from "../stores/delivery-list.ts";
import type { DeliveryTrace } from "../stores/delivery-trace.ts";
import type { DeliveryUsers } from "../stores/delivery-users.ts";
import type { DeviceTimeline } from "../stores/device-timeline.ts";
import type { Sums } from "../stores/ledger-reads.ts";
import type { FindNotification } from "./find-notification.ts";
import { notificationView } from "./notification-view.ts";
import { acceptedView } from "./notifications.ts";

type Deps = {
  readonly bus: Bus;
  readonly find: FindNotification;
  readonly list: DeliveryList["list"];
  readonly exportDeliveries: DeliveryExport["page"];
  readonly trace: DeliveryTrace["trace"];
  readonly timeline: DeviceTimeline["timeline"];
  readonly usersOf: DeliveryUsers["usersOf"];
  readonly sumsOf: (projectId: ProjectId, id: NotificationId) => Promise<Sums>;
  readonly now: () => Date;
};

/** The ledger of a notification, one row per device, and what it knows of a single one. */
export const handleDeliveryRequests = ({
  bus,
  find,
  list,
  exportDeliveries,
  trace,
  timeline,
  usersOf,
  sumsOf,
  now,
}: Deps): RequestListener[] => [
  handleRequest(bus, ListDeliveries, async ({ projectId, notificationId, status, page }) => {
    await find(projectId, notificationId);
    return list({ projectId, notificationId, status }, page);
  }),

  handleRequest(bus, ListDeviceNotifications, ({ projectId, deviceId, page }) => timeline(projectId, deviceId, page)),

  handleRequest(bus, ExportDeliveries, async ({ after, limit, ...wanted }) => {
    if (wanted.notificationId) await find(wanted.projectId, wanted.notificationId);
    const { rows, next } = await exportDeliveries(wanted, after, limit);
    return { rows: rows.map((row) => JSON.stringify(row)), next };
  }),

  handleRequest(bus, UsersOfDeliveries, ({ projectId, deliveries }) => usersOf(projectId, deliveries)),

  handleRequest(bus, GetDeliveryTrace, async ({ projectId, notificationId, deviceId }) => {
    const found = await find(projectId, notificationId);
    if ("send" in found) return { notification: acceptedView(found.send, now()), expanded: false, attempts: [] };
    const { document } = found;
    const sums = document.final || document.dueAt ? undefined : await sumsOf(projectId, notificationId);
    const { delivery, attempts, nextAttemptAt } = await trace(projectId, notificationId, deviceId);
    return {
      notification: notificationView(document, sums),
      expanded: document.expanded !== undefined || document.final !== undefined,
      ...(delivery && { delivery }),
      attempts: [...attempts],
      ...(nextAttemptAt && { nextAttemptAt: nextAttemptAt.toISOString() }),
    };
  }),
];
