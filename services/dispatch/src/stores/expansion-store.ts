import type { NotificationId, ProjectId } from "@herald/contracts";
import { findSome, guardStore, projectAfter } from "@herald/mongo";
import type { Db } from "mongodb";
import { notificationCollection, notificationHints } from "./notification-document.ts";
import { toExpanding } from "./notification-steps.ts";

/** Which notifications of each project are being expanded, and which wait for their turn. */
export const createExpansionStore = (db: Db) => {
  const notifications = notificationCollection(db);
  const hint = notificationHints.steps;

  return guardStore({
    /** How many expansions of a project are running, counted up to `limit`. */
    countRunning: (projectId: ProjectId, limit: number): Promise<number> =>
      notifications.countDocuments({ projectId, step: "expanding" }, { hint, limit }),

    /**
     * The oldest notifications of a project that wait to be expanded, and are not paused. `paused`: the project is. Those whose time to live
     * has ended are expanded all the same: their devices are counted as expired.
     */
    oldest: async (
      projectId: ProjectId,
      limit: number,
      { paused, now }: { readonly paused: boolean; readonly now: Date },
    ): Promise<NotificationId[]> => {
      const options = { hint, sort: { _id: 1 }, limit, projection: { _id: 1 } } as const;
      const isOver = { expiresAt: { $lte: now } };
      const going = paused ? { stop: { $exists: true } } : { paused: { $exists: false } };
      const filter = { projectId, step: "accepted" as const, $or: [going, isOver] };
      const waiting = await findSome(notifications, filter, options);
      return waiting.map(({ _id }) => _id);
    },

    /** Records that expansions with the number `n` were commanded. From then on, the sweep checks these notifications. */
    start: async (projectId: ProjectId, ids: readonly NotificationId[], n: number, now: Date): Promise<void> => {
      let left = ids.length;
      for (const { filter, update } of toExpanding(n, now)) {
        if (left <= 0) return;
        left -= (await notifications.updateMany({ ...filter, _id: { $in: [...ids] }, projectId }, update)).matchedCount;
      }
    },

    /** The first project with a notification that waits to be expanded whose id is greater than `projectId`. */
    projectAfter: projectAfter(notifications, { hint, filter: { step: "accepted" } }),
  });
};
