import {
  newTopicId,
  type OutboxEvent,
  type PageOf,
  type PageRequest,
  type ProjectId,
  type TopicId,
  type TopicReference,
} from "@herald/contracts";
import {
  anyOf,
  type Counts,
  ensureIndexes,
  findPage,
  guardStore,
  type IndexSpec,
  indexName,
  inOneCommand,
  isDuplicateKey,
  outboxIndex,
} from "@herald/mongo";
import type { Collection, Db } from "mongodb";
import { type Occasion, type TopicRow, topicCreated, topicDeleted } from "../domain/registry-events.ts";

export type TopicDocument = {
  readonly _id: TopicId;
  readonly projectId: ProjectId;
  readonly name: string;
  readonly createdAt: Date;
  /** Only a project token subscribes to it. */
  readonly closed?: boolean;
  /** It is gone for everyone; its subscriptions are being ended, and until then nobody can have its name. */
  readonly deletedAt?: Date;
  /** A tombstone: no subscription is left, the name is free, and it stays only until its event is out. */
  readonly sweptAt?: Date;
  readonly outbox?: readonly OutboxEvent[];
};

const indexes = {
  name: { fields: { projectId: 1, name: 1 }, purpose: "unique", unique: true },
  list: { fields: { projectId: 1, _id: 1 }, purpose: "list" },
  deleted: { fields: { deletedAt: 1 }, purpose: "sweep", partial: { deletedAt: { $exists: true } } },
  outbox: outboxIndex,
} as const satisfies Record<string, IndexSpec>;

export type TopicStore = ReturnType<typeof createTopicStore>;

export const topicCollection = (db: Db): Collection<TopicDocument> => db.collection<TopicDocument>("topics");

const living = { deletedAt: { $exists: false } } as const;

type NewTopic = TopicRow & { readonly closed?: boolean | undefined };

const isId = (reference: TopicReference): reference is TopicId => reference.startsWith("top_");

export const rowOf = ({ _id, name }: TopicDocument): TopicRow => ({ id: _id, name });

export const createTopicStore = (db: Db, counts: Counts) => {
  const topics = topicCollection(db);

  const findNamed = inOneCommand<{ projectId: ProjectId; names: readonly string[] }, TopicDocument[]>(async (asked) => {
    const filter = {
      projectId: anyOf(asked.map(({ projectId }) => projectId)),
      name: anyOf(asked.flatMap(({ names }) => names)),
    };
    const found = await topics.find(filter, { hint: indexName(indexes.name), batchSize: 10_000 }).toArray();
    return asked.map(({ projectId, names }) =>
      found.filter((topic) => topic.projectId === projectId && names.includes(topic.name)),
    );
  });
  const findNames = (projectId: ProjectId, names: readonly string[]): Promise<TopicDocument[]> =>
    findNamed({ projectId, names });

  const insert = async (occasion: Occasion, { id, name, closed }: NewTopic): Promise<boolean> => {
    const { projectId, at } = occasion;
    try {
      await topics.insertOne({
        _id: id,
        projectId,
        name,
        createdAt: at,
        ...(closed && { closed }),
        outbox: [topicCreated(occasion, { id, name })],
      });
      return true;
    } catch (error) {
      if (isDuplicateKey(error)) return false;
      throw error;
    }
  };

  return guardStore({
    ensureIndexes: () => ensureIndexes(topics, Object.values(indexes)),

    find: async (projectId: ProjectId, reference: TopicReference): Promise<TopicDocument | undefined> =>
      (isId(reference)
        ? await topics.findOne({ projectId, _id: reference, ...living })
        : await topics.findOne({ projectId, name: reference, ...living }, { hint: indexName(indexes.name) })) ??
      undefined,

    /** False when the id or the name is taken. */
    insert,

    /**
     * The topics of these names, made where there are none. `deleting` names those whose deletion is still under way: nobody
     * can have them yet.
     */
    ensure: async (
      occasion: Occasion,
      names: readonly string[],
    ): Promise<{ topics: TopicRow[]; created: TopicId[]; deleting: string[] }> => {
      const { projectId, at } = occasion;
      const created: TopicId[] = [];
      let found = names.length === 0 ? [] : await findNames(projectId, names);
      const missing = names.filter((name) => !found.some((topic) => topic.name === name));
      if (missing.length > 0) {
        for (const name of missing) {
          const id = newTopicId(at);
          if (await insert(occasion, { id, name })) created.push(id);
        }
        // Somebody else may have made one of them just now: theirs is the one that counts.
        found = await findNames(projectId, names);
      }
      const alive = found.filter(({ deletedAt }) => deletedAt === undefined);
      const deleting = names.filter((name) => !alive.some((topic) => topic.name === name));
      return { topics: alive.map(rowOf), created, deleting };
    },

    list: (projectId: ProjectId, request: PageRequest): Promise<PageOf<TopicDocument>> =>
      findPage(topics, { filter: { projectId, ...living }, hint: indexName(indexes.list), request, counts }),

    /** Closes or opens a topic; undefined when there is none of that id. */
    setClosed: async (projectId: ProjectId, id: TopicId, closed: boolean): Promise<TopicDocument | undefined> =>
      (await topics.findOneAndUpdate(
        { projectId, _id: id, ...living },
        { $set: { closed } },
        { returnDocument: "after" },
      )) ?? undefined,

    /** The first step of a deletion; undefined when there is no such topic. */
    markDeleted: async (occasion: Occasion, topic: TopicRow): Promise<boolean> => {
      const { projectId, at } = occasion;
      const { modifiedCount } = await topics.updateOne(
        { projectId, _id: topic.id, ...living },
        { $set: { deletedAt: at }, $push: { outbox: topicDeleted(occasion, topic) } },
      );
      return modifiedCount > 0;
    },

    /** Topics whose deletion is under way, of all projects, oldest first. */
    deleting: (limit: number): Promise<TopicDocument[]> =>
      topics
        .find(
          { deletedAt: { $exists: true } },
          { hint: indexName(indexes.deleted), sort: { deletedAt: 1 }, limit, batchSize: limit + 1 },
        )
        .toArray(),

    /** The last step, when no subscription is left: frees the name, and removes the topic once its event is out. */
    bury: async (projectId: ProjectId, id: TopicId, at: Date): Promise<void> => {
      // No topic can be named like an id.
      const set = { $set: { sweptAt: at, name: id } };
      await topics.updateOne({ projectId, _id: id, deletedAt: { $exists: true }, sweptAt: { $exists: false } }, set);
      await topics.deleteOne({ projectId, _id: id, sweptAt: { $exists: true }, outbox: { $exists: false } });
    },

    /** Removes up to `limit` topics of a project that is deleted; resolves to how many there were. */
    removeSome: async (projectId: ProjectId, limit: number): Promise<number> => {
      const rows = await topics
        .find({ projectId }, { hint: indexName(indexes.list), projection: { _id: 1 }, limit, batchSize: limit + 1 })
        .toArray();
      if (rows.length > 0) await topics.deleteMany({ projectId, _id: { $in: rows.map(({ _id }) => _id) } });
      return rows.length;
    },
  });
};
