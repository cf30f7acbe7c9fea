import { firstNotificationId, idTime, type NotificationId, type ProjectId } from "@herald/contracts";
import {
  byIndex,
  deadlineOptions,
  ensureIndexes,
  guardStore,
  type IndexSpec,
  indexName,
  insertMissing,
  type RemovedBatch,
  removeFirst,
  removeOldest,
  retentionBatch,
} from "@herald/mongo";
import type { Collection, Db, Filter, FindOptions } from "mongodb";
import type { NotificationFacts } from "../domain/notification-facts.ts";

const indexes = {
  byTopic: { fields: { projectId: 1, topics: 1, at: 1 }, purpose: "statistics" },
  byUser: {
    fields: { projectId: 1, userKeys: 1, at: 1 },
    purpose: "statistics",
    partial: { userKeys: { $exists: true } },
  },
} as const satisfies Record<string, IndexSpec>;

/** Topics, users and times of notifications. Every function throws `database-unavailable` when the database is. */
export const createNotificationFactsStore = (db: Db) => {
  const collection: Collection<NotificationFacts> = db.collection("notificationFacts");
  const ofUser = (projectId: ProjectId, key: string) => ({ projectId, userKeys: { $exists: true, $eq: key } });
  const findIds = async (filter: Filter<NotificationFacts>, options: FindOptions): Promise<NotificationId[]> => {
    const found = await collection.find(filter, { projection: { _id: 1 }, ...options }).toArray();
    return found.map(({ _id }) => _id);
  };

  return guardStore({
    ensureIndexes: () => ensureIndexes(collection, Object.values(indexes)),

    /** Stores each once; facts never change. */
    put: async (batch: readonly NotificationFacts[]): Promise<void> => {
      await insertMissing(collection, batch);
    },

    /** `send_at` of those that have one. */
    sendTimes: async (ids: readonly NotificationId[]): Promise<Map<NotificationId, Date>> => {
      const found = await collection
        .find(
          { _id: { $in: [...new Set(ids)] }, sendAt: { $exists: true } },
          { hint: "_id_", projection: { sendAt: 1, at: 1 } },
        )
        .toArray();
      return new Map(found.map(({ _id, at, sendAt }) => [_id, sendAt ?? at]));
    },

    /** Notifications to a topic whose sending began in the range. */
    ofTopic: (projectId: ProjectId, topic: string, from: Date, to: Date): Promise<NotificationId[]> =>
      findIds(
        { projectId, topics: topic, at: { $gte: from, $lt: to } },
        { hint: indexName(indexes.byTopic), ...deadlineOptions() },
      ),

    /** Notifications to any topics whose sending began in the range, with the topics. */
    withTopics: (projectId: ProjectId, from: Date, to: Date): Promise<Pick<NotificationFacts, "_id" | "topics">[]> =>
      collection
        .find(
          { projectId, topics: { $gt: "" }, at: { $gte: from, $lt: to } },
          { hint: indexName(indexes.byTopic), projection: { topics: 1 }, batchSize: 10_000, ...deadlineOptions() },
        )
        .toArray(),

    /** Notifications to a user whose sending began in the range. */
    ofUser: (projectId: ProjectId, key: string, from: Date, to: Date): Promise<NotificationId[]> =>
      findIds({ ...ofUser(projectId, key), at: { $gte: from, $lt: to } }, { hint: indexName(indexes.byUser) }),

    /** Removes a batch of facts of notifications that were accepted before `before`. */
    removeOld: (before: Date): Promise<RemovedBatch> =>
      removeOldest(collection, { _id: { $lt: firstNotificationId(before) } }, { hint: "_id_", sort: { _id: 1 } }),

    /** Removes a user's key from the facts of notifications up to `at`. */
    eraseUser: async (projectId: ProjectId, key: string, at: Date): Promise<void> => {
      const found = await findIds(ofUser(projectId, key), {
        hint: indexName(indexes.byUser),
        batchSize: retentionBatch,
      });
      const ids = found.filter((id) => idTime(id) <= at);
      for (let from = 0; from < ids.length; from += retentionBatch)
        await collection.updateMany(
          { projectId, _id: { $in: ids.slice(from, from + retentionBatch) } },
          { $pull: { userKeys: key } },
        );
    },

    /** Removes a page of a project's facts. False when none is left. */
    removePage: async (projectId: ProjectId): Promise<boolean> =>
      (await removeFirst(collection, { projectId }, byIndex(indexes.byTopic))).length > 0,
  });
};

export type NotificationFactsStore = ReturnType<typeof createNotificationFactsStore>;
