import { defineHandler } from "@herald/bus";
import { SendV1 } from "@herald/contracts";
import type { FairGate } from "@herald/kit";
import type { DueMessages } from "../delivery/due-messages.ts";
import type { NotificationCache } from "../delivery/notification-cache.ts";
import type { ExpandQueued } from "../jobs/expand-queued.ts";
import type { NotificationState, OutboxCarrier } from "../stores/notification-document.ts";
import type { NotificationStore } from "../stores/notification-store.ts";

/** A notification was accepted: store it under its id and have it expanded, when its project's turn or its time comes. */
export const startNotification = ({
  notifications,
  cache,
  expandQueued,
  dueMessages,
  publishNotification,
  flushNotification,
  gate,
  concurrency,
  now,
}: {
  notifications: NotificationStore;
  cache: NotificationCache;
  expandQueued: ExpandQueued;
  dueMessages: Pick<DueMessages, "scheduleNotification">;
  /** Publishes what it was just written with. Never throws. */
  publishNotification: (written: OutboxCarrier) => Promise<void>;
  /** Publishes what is in its outbox. Never throws. */
  flushNotification: (document: NotificationState) => Promise<void>;
  /** How many are started at a time, and whose. */
  gate: FairGate;
  /** Those in memory, which wait for their turn at the gate: so many of one project keep no other's waiting. */
  concurrency: number;
  now: () => Date;
}) => {
  const start = async (data: SendV1): Promise<void> => {
    const inserted = await notifications.insert(data, now());
    if (inserted) cache.put(inserted.document);
    // Known already: it came twice, or was cancelled before it came and is final.
    const document = inserted?.document ?? (await notifications.get(data.projectId, data.notificationId));
    if (!document || document.final || document.expanded) return;
    if (document.dueAt) await dueMessages.scheduleNotification(document, document.dueAt);
    else await expandQueued(document.projectId, inserted?.document);
    if (inserted) await publishNotification({ ...document, outbox: inserted.outbox });
    else await flushNotification(document);
  };
  return defineHandler({
    durable: "dispatch-start", // renaming a durable replays its stream
    message: SendV1,
    concurrency,
    async handle({ data }) {
      const leave = await gate.enter(data.projectId, 1);
      try {
        await start(data);
      } finally {
        leave();
      }
    },
  });
};
