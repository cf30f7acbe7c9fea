import { defineHandler } from "@herald/bus";
import { ExpandedV1 } from "@herald/contracts";
import type { Finisher } from "../delivery/finish.ts";
import type { NotificationCache } from "../delivery/notification-cache.ts";
import type { ExpandQueued } from "../jobs/expand-queued.ts";
import type { NotificationStore } from "../stores/notification-store.ts";

/** Registry has partitioned every batch: from now on its end can be detected. */
export const completeExpansion = ({
  notifications,
  cache,
  finisher,
  expandQueued,
  now,
}: {
  notifications: Pick<NotificationStore, "expanded">;
  cache: Pick<NotificationCache, "sending">;
  finisher: Finisher;
  expandQueued: ExpandQueued;
  now: () => Date;
}) =>
  defineHandler({
    durable: "dispatch-complete-expansion", // renaming a durable replays its stream
    message: ExpandedV1,
    concurrency: 32, // short waits for the database
    async handle({ data: { projectId, notificationId, ...expanded }, publishedAt: at }) {
      await notifications.expanded(projectId, notificationId, { ...expanded, at }, now());
      await expandQueued(projectId);
      // The handler that settles the last batch in this process checks for the end, and sees this by then.
      if (cache.sending(notificationId)) return;
      if (expanded.batches === 1) await finisher.checkSingleBatch(projectId, notificationId);
      else await finisher.check(projectId, notificationId);
    },
  });
