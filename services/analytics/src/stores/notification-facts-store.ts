import {
  type DataOf,
  firstNotificationId,
  idTime,
  type NotificationAcceptedV1,
  type NotificationChangedV1,
  type NotificationId,
  type ProjectId,
  userKey,
} from "@herald/contracts";
import {
  deadlineOptions,
  findByIds,
  guardStore,
  type IndexSpec,
  indexName,
  insertMissing,
  projectRows,
  type RemovedBatch,
  removeOldest,
  retentionBatch,
} from "@herald/mongo";
import type { Collection, Db, Filter, FindOptions } from "mongodb";

/** The data of a notification that statistics need beside its id. */
export type NotificationFacts = {
  readonly _id: NotificationId;
  readonly projectId: ProjectId;
  readonly topics: readonly string[];
  /** `userKey` of the users among its targets; absent: none. */
  readonly userKeys?: readonly string[];
  /** When sending begins. */
  readonly at: Date;
  readonly sendAt?: Date;
};

/** Of a notification with topics, users or `send_at`: others have none. */
export const notificationFactsOf = (data: DataOf<typeof NotificationAcceptedV1>): NotificationFacts => {
  const { project_id: projectId, notification_id: notificationId, at, send_at: sendAt, topics = [], users = [] } = data;
  return {
    _id: notificationId,
    projectId,
    topics,
    ...(users.length > 0 && { userKeys: users.map((userId) => userKey(projectId, userId)) }),
    at: new Date(sendAt ?? at),
    ...(sendAt !== undefined && { sendAt: new Date(sendAt) }),
  };
};

const indexes = {
  byTopic: { fields: { projectId: 1, topics: 1, at: 1 }, purpose: "statistics" },
  byUser: {
    fields: { projectId: 1, userKeys: 1, at: 1 },
    purpose: "statistics",
    partial: { userKeys: { $exists: true } },
  },
} as const satisfies Record<string, IndexSpec>;

/** Topics, users and times of notifications. Every function throws `database-unavailable` while the database is unavailable. */
export const createNotificationFactsStore = (db: Db) => {
  const collection: Collection<NotificationFacts> = db.collection("notificationFacts");
  const ofUser = (projectId: ProjectId, key: string) => ({ projectId, userKeys: { $exists: true, $eq: key } });
  const findIds = async (filter: Filter<NotificationFacts>, options: FindOptions): Promise<NotificationId[]> => {
    const found = await collection.find(filter, { projection: { _id: 1 }, ...options }).toArray();
    return found.map(({ _id }) => _id);
  };

  return guardStore({
    ...projectRows(collection, indexes, indexes.byTopic),

    /** Their sending begins at another time. */
    reschedule: async (changes: readonly DataOf<typeof NotificationChangedV1>[]): Promise<void> => {
      for (const { project_id: projectId, notification_id: _id, send_at: sendAt } of changes)
        await collection.updateOne({ _id, projectId }, { $set: { at: new Date(sendAt), sendAt: new Date(sendAt) } });
    },

    /** Stores the facts of each notification once; only their times change. */
    put: async (batch: readonly NotificationFacts[]): Promise<void> => {
      await insertMissing(collection, batch);
    },

    /** `send_at` of the notifications that have one. */
    sendTimes: async (ids: readonly NotificationId[]): Promise<Map<NotificationId, Date>> => {
      const found = await findByIds(
        collection,
        ids,
        { sendAt: { $exists: true } },
        { projection: { sendAt: 1, at: 1 } },
      );
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
  });
};

export type NotificationFactsStore = ReturnType<typeof createNotificationFactsStore>;
