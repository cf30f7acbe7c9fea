import { setTimeout as sleep } from "node:timers/promises";
import { type Bus, handleRequest, type RequestListener } from "@herald/bus";
import {
  CancelNotification,
  ExportNotifications,
  GetNotification,
  ListNotifications,
  type Notification,
  type NotificationId,
  type ProjectId,
  type SendV1,
} from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import { encodeAfter } from "@herald/mongo";
import { exportPage } from "@herald/service";
import { freshMs, type NotificationCache } from "../delivery/notification-cache.ts";
import { noDevices } from "../domain/counts.ts";
import type { Sweeps } from "../jobs/sweeps.ts";
import type { DeliveryStore } from "../stores/delivery-store.ts";
import type { Sums } from "../stores/ledger-reads.ts";
import type { NotificationRecord, NotificationState } from "../stores/notification-document.ts";
import type { NotificationStore } from "../stores/notification-store.ts";
import type { FindNotification } from "./find-notification.ts";
import { notificationView } from "./notification-view.ts";

type Deps = {
  readonly bus: Bus;
  readonly find: FindNotification;
  readonly notifications: NotificationStore;
  readonly deliveries: Pick<DeliveryStore, "makeDue">;
  readonly sumsOf: (projectId: ProjectId, id: NotificationId) => Promise<Sums>;
  readonly cache: NotificationCache;
  readonly sweeps: Pick<Sweeps, "sweepDue">;
  readonly flushNotification: (document: NotificationState) => Promise<void>;
  readonly now: () => Date;
};

/** After this no process begins another chunk of what was cancelled: a timer may end a little early. */
const heardMs = freshMs + 10;

/** Those that are not final need a query each. */
const viewsAtATime = 50;

export const handleNotificationRequests = (deps: Deps): RequestListener[] => {
  const { bus, find, notifications, deliveries, sumsOf, cache, sweeps, flushNotification, now } = deps;

  const view = async (document: NotificationRecord): Promise<Notification> =>
    document.final || document.dueAt
      ? notificationView(document)
      : notificationView(document, await sumsOf(document.projectId, document._id));

  /** True when it was being sent, so that other processes may not have noticed yet. */
  const cancel = async (projectId: ProjectId, notificationId: NotificationId): Promise<boolean> => {
    for (;;) {
      const found = await find(projectId, notificationId);
      if ("send" in found) {
        const cancelled = await notifications.insertCancelled(found.send, now());
        if (cancelled) return false;
        continue;
      }
      const { document } = found;
      if (document.final)
        throw new HeraldError(
          "notification-final",
          `the notification is ${document.final.status}: nothing is left to cancel`,
        );
      const done = document.dueAt
        ? await notifications.cancelScheduled(document, now())
        : await notifications.cancelBegun(projectId, notificationId, now());
      // False when it went on meanwhile: look where it is now.
      if (done) return document.dueAt === undefined;
    }
  };

  return [
    handleRequest(bus, GetNotification, async ({ projectId, notificationId }) => {
      const found = await find(projectId, notificationId);
      return "document" in found ? view(found.document) : acceptedView(found.send, now());
    }),

    handleRequest(bus, ListNotifications, async ({ projectId, page, ...filter }) => {
      const found = await notifications.list(projectId, filter, page);
      return { ...found, data: await Promise.all(found.data.map(view)) };
    }),

    handleRequest(
      bus,
      ExportNotifications,
      async ({ projectId, after, limit, createdAfter, createdBefore, ...filter }) => {
        const found = await notifications.list(projectId, filter, {
          by: "key",
          after: after === undefined ? "" : encodeAfter(after),
          perPage: limit,
          ...(createdAfter !== undefined && { createdAfter }),
          ...(createdBefore !== undefined && { createdBefore }),
        });
        const rows: Notification[] = [];
        for (let from = 0; from < found.data.length; from += viewsAtATime)
          rows.push(...(await Promise.all(found.data.slice(from, from + viewsAtATime).map(view))));
        return exportPage(rows, "next" in found && found.next !== null);
      },
    ),

    handleRequest(bus, CancelNotification, async ({ projectId, notificationId }) => {
      const begun = await cancel(projectId, notificationId);
      cache.cancel(notificationId);
      const heard = begun ? sleep(heardMs) : undefined;
      await deliveries.makeDue(projectId, notificationId, now());
      void sweeps.sweepDue();
      const document = await notifications.get(projectId, notificationId);
      if (!document)
        throw new HeraldError("notification-not-found", `the project has no notification ${notificationId}`);
      await flushNotification(document);
      await heard;
      return view(document);
    }),
  ];
};

/** One that is accepted and has not reached the database. */
export const acceptedView = (send: SendV1, now: Date): Notification => {
  const sendAt = send.sendAt === undefined ? undefined : new Date(send.sendAt);
  return notificationView(
    {
      _id: send.notificationId,
      projectId: send.projectId,
      content: send.content,
      acceptedAt: new Date(send.acceptedAt),
      expiresAt: new Date(send.expiresAt),
      expansion: "queued",
      ...(sendAt && sendAt > now ? { dueAt: sendAt } : {}),
    },
    { tally: noDevices, failures: {}, rows: 0 },
  );
};
