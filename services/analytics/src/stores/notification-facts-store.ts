import { firstNotificationId, idTime, type NotificationId, type ProjectId } from "@herald/contracts";
import {
  ensureIndexes,
  forCaller,
  guardStore,
  type IndexSpec,
  indexName,
  insertMissing,
  type RemovedBatch,
  removeFirst,
  retentionBatch,
} from "@herald/mongo";
import type { Collection, Db } from "mongodb";
import type { Notice } from "../domain/notification-facts.ts";

const byTopic = {
  fields: { projectId: 1, topics: 1, at: 1 },
  purpose: "statistics",
} as const satisfies IndexSpec;

const byUser = {
  fields: { projectId: 1, userKeys: 1, at: 1 },
  purpose: "statistics",
  partial: { userKeys: { $exists: true } },
} as const satisfies IndexSpec;

const deletionPage = 2_000;

/** Topics and times of notifications. Every function throws `database-unavailable` when the database is. */
export const createNoticeStore = (db: Db) => {
  const notices: Collection<Notice> = db.collection("notices");
  return guardStore({
    ensureIndexes: () => ensureIndexes(notices, [byTopic, byUser]),

    /** Stores each once: what it says never changes. */
    put: async (batch: readonly Notice[]): Promise<void> => {
      await insertMissing(notices, batch);
    },

    /** `send_at` of those that have one. */
    sendTimes: async (ids: readonly NotificationId[]): Promise<Map<NotificationId, Date>> => {
      const found = await notices
        .find(
          { _id: { $in: [...new Set(ids)] }, sendAt: { $exists: true } },
          { hint: "_id_", projection: { sendAt: 1, at: 1 } },
        )
        .toArray();
      return new Map(found.map(({ _id, at, sendAt }) => [_id, sendAt ?? at]));
    },

    /** Notifications to a topic whose sending began between two times. */
    ofTopic: async (projectId: ProjectId, topic: string, from: Date, to: Date): Promise<NotificationId[]> => {
      const found = await notices
        .find(
          { projectId, topics: topic, at: { $gte: from, $lt: to } },
          { hint: indexName(byTopic), projection: { _id: 1 }, ...forCaller() },
        )
        .toArray();
      return found.map(({ _id }) => _id);
    },

    /** Removes a batch of those of notifications that were accepted before `before`. */
    removeOld: async (before: Date): Promise<RemovedBatch> => {
      const old = { _id: { $lt: firstNotificationId(before) } };
      const { length } = await removeFirst(notices, old, { hint: "_id_", sort: { _id: 1 } });
      return { removed: length, more: length === retentionBatch };
    },

    /** Notifications to a user whose sending began between two times. */
    ofUser: async (projectId: ProjectId, key: string, from: Date, to: Date): Promise<NotificationId[]> => {
      const found = await notices
        .find(
          { projectId, userKeys: { $exists: true, $eq: key }, at: { $gte: from, $lt: to } },
          { hint: indexName(byUser), projection: { _id: 1 } },
        )
        .toArray();
      return found.map(({ _id }) => _id);
    },

    /** Forgets that notifications from before `at` were to a user. */
    eraseUser: async (projectId: ProjectId, key: string, at: Date): Promise<void> => {
      const found = await notices
        .find(
          { projectId, userKeys: { $exists: true, $eq: key } },
          { hint: indexName(byUser), projection: { _id: 1 }, batchSize: deletionPage },
        )
        .toArray();
      const ids = found.map(({ _id }) => _id).filter((id) => idTime(id) <= at);
      for (let from = 0; from < ids.length; from += deletionPage)
        await notices.updateMany(
          { projectId, _id: { $in: ids.slice(from, from + deletionPage) } },
          { $pull: { userKeys: key } },
        );
    },

    /** Removes notices of a project, a page at a time. False when none is left. */
    removePage: async (projectId: ProjectId): Promise<boolean> => {
      const page = await notices
        .find({ projectId }, { hint: indexName(byTopic), projection: { _id: 1 } })
        .limit(deletionPage)
        .toArray();
      if (page.length === 0) return false;
      await notices.deleteMany({ projectId, _id: { $in: page.map(({ _id }) => _id) } });
      return true;
    },
  });
};

export type NoticeStore = ReturnType<typeof createNoticeStore>;
