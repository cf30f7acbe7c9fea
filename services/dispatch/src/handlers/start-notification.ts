import { defineHandler } from "@herald/bus";
import { SendV1 } from "@herald/contracts";
import type { Expand } from "../delivery/expand.ts";
import type { NotificationWatch } from "../delivery/notification-watch.ts";
import type { Schedule } from "../delivery/schedule.ts";
import { scheduleSubject } from "../domain/batch-ids.ts";
import type { NotificationState, Told } from "../stores/notification-document.ts";
import type { NotificationStore } from "../stores/notification-store.ts";

/** A notification was accepted: store it under its id and have it expanded, now or when its time comes. */
export const startNotification = ({
  notifications,
  watch,
  expand,
  schedule,
  announce,
  flush,
  now,
}: {
  notifications: NotificationStore;
  watch: NotificationWatch;
  expand: Expand;
  schedule: Schedule;
  /** Publishes what it was just written with. Never throws. */
  announce: (told: Told) => Promise<void>;
  /** Publishes what is in its outbox. Never throws. */
  flush: (document: NotificationState) => Promise<void>;
  now: () => Date;
}) =>
  defineHandler({
    durable: "dispatch-start", // renaming a durable replays its stream
    message: SendV1,
    concurrency: 64, // a few short waits each, for the database's disk and the broker's
    async handle({ data }) {
      const inserted = await notifications.insert(data, now());
      if (inserted) watch.put(inserted.document);
      // Known already: it came twice, or was cancelled before it came and is final.
      const document = inserted?.document ?? (await notifications.get(data.projectId, data.notificationId));
      if (!document || document.final || document.expanded) return;
      if (document.dueAt) await schedule(wakeUp(document, document.dueAt));
      else await expand(document);
      if (inserted) await announce({ ...document, outbox: inserted.outbox });
      else await flush(document);
    },
  });

const wakeUp = ({ _id, projectId }: NotificationState, at: Date): Parameters<Schedule>[0] => ({
  subject: scheduleSubject(_id, 0),
  at,
  data: { kind: "notification", projectId, key: _id, id: _id },
});
