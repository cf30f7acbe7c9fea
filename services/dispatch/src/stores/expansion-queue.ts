import type { NotificationId, ProjectId } from "@herald/contracts";
import { guardStore } from "@herald/mongo";
import type { Db } from "mongodb";
import { type NotificationState, notificationCollection, notificationHints } from "./notification-document.ts";

const some = { $exists: true } as const;

/** Which notifications of each project are being expanded, and which wait for their turn. */
export const createExpansionQueue = (db: Db) => {
  const notifications = notificationCollection(db);
  const hint = notificationHints.expansions;

  return guardStore({
    /** How many expansions of a project are under way, counted up to `limit`. */
    countRunning: (projectId: ProjectId, limit: number): Promise<number> =>
      notifications.countDocuments(
        { projectId, expansion: { ...some, $eq: "running" }, expanded: { $exists: false } },
        { hint, limit },
      ),

    /** The oldest of a project's notifications that wait. */
    oldest: async (projectId: ProjectId, limit: number): Promise<NotificationId[]> => {
      const queued = await notifications
        .find({ projectId, expansion: { ...some, $eq: "queued" } }, { hint, projection: { _id: 1 } })
        .sort({ _id: 1 })
        .limit(limit)
        .toArray();
      return queued.map(({ _id }) => _id);
    },

    /** Their expansion has been commanded. From now on the sweep looks at them one by one. */
    start: async (projectId: ProjectId, ids: readonly NotificationId[], checkAt: Date): Promise<void> => {
      await notifications.updateMany(
        { _id: { $in: [...ids] }, projectId, expansion: { ...some, $eq: "queued" } },
        { $set: { expansion: "running", checkAt } },
      );
    },

    /** Puts one in the queue that has never been in it, unless it is expanded or final. */
    add: async (projectId: ProjectId, id: NotificationId): Promise<void> => {
      await notifications.updateOne(
        {
          _id: id,
          projectId,
          final: { $exists: false },
          expanded: { $exists: false },
          expansion: { $exists: false },
        },
        { $set: { expansion: "queued" }, $unset: { checkAt: "" } },
      );
    },

    /** Has one that was expanded be expanded again, under the same batch ids. False when somebody has changed that since it was read. */
    restart: async ({ _id, projectId, expanded }: NotificationState, checkAt: Date): Promise<boolean> => {
      const { modifiedCount } = await notifications.updateOne(
        {
          _id,
          projectId,
          final: { $exists: false },
          expanded: some,
          "expanded.at": expanded?.at ?? { $exists: false },
        },
        { $unset: { expanded: "" }, $set: { expansion: "running", checkAt } },
      );
      return modifiedCount === 1;
    },

    /** The first project after this one, by its id, that has a notification in the queue or under way. */
    projectAfter: async (projectId: string): Promise<ProjectId | undefined> => {
      const found = await notifications
        .find({ projectId: { $gt: projectId as ProjectId }, expansion: some }, { hint, projection: { projectId: 1 } })
        .sort({ projectId: 1 })
        .limit(1)
        .next();
      return found?.projectId;
    },
  });
};

export type ExpansionQueue = ReturnType<typeof createExpansionQueue>;
