import {
  firstTopicId,
  type ListRequest,
  newTopicId,
  type OutboxEvent,
  type PageOf,
  type ProjectId,
  type TopicId,
  type TopicReference,
} from "@herald/contracts";
import {
  anyOf,
  beginsWith,
  type Counts,
  findPage,
  guardStore,
  type IndexSpec,
  indexName,
  inOneCommand,
  insertMissing,
  outboxIndex,
  projectRows,
} from "@herald/mongo";
import type { Collection, Db } from "mongodb";
import { type EventContext, registryEvent, type TopicRow } from "../domain/registry-events.ts";
import { deletedIndex, findDeleted, notDeleted } from "./tombstones.ts";

export type TopicDocument = {
  readonly _id: TopicId;
  readonly projectId: ProjectId;
  readonly name: string;
  readonly createdAt: Date;
  /** Only project tokens may subscribe devices. */
  readonly closed?: boolean;
  /** Set: its subscriptions are being removed. Its name stays taken until then. */
  readonly deletedAt?: Date;
  /** Set: no subscriptions are left, and its name is free. The tombstone stays until its event is published. */
  readonly sweptAt?: Date;
  readonly outbox?: readonly OutboxEvent[];
};

const indexes = {
  name: { fields: { projectId: 1, name: 1 }, purpose: "unique", unique: true },
  list: { fields: { projectId: 1, _id: 1 }, purpose: "list" },
  deleted: deletedIndex,
  outbox: outboxIndex,
} as const satisfies Record<string, IndexSpec>;

export const topicCollection = (db: Db): Collection<TopicDocument> => db.collection<TopicDocument>("topics");

type NewTopic = TopicRow & { readonly closed?: boolean | undefined };

export const isId = (reference: TopicReference): reference is TopicId => reference.startsWith("top_");

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

  const insert = (context: EventContext, { id, name, closed }: NewTopic): Promise<boolean> => {
    const { projectId, at: createdAt } = context;
    const outbox = [registryEvent(context, "TopicCreatedV1", id, { topic_id: id, topic: name })];
    return insertMissing(topics, [{ _id: id, projectId, name, createdAt, ...(closed && { closed }), outbox }]);
  };

  const creating = new Map<string, Promise<boolean>>();
  /**
   * Creates a topic if its name is free. Resolves to its id for the call that created it. Calls for the same name share one insert: the
   * database would let each wait for the one before, and a busy one takes seconds for a hundred registrations of a new topic.
   */
  const create = async (context: EventContext, name: string): Promise<TopicId | undefined> => {
    const key = `${context.projectId}/${name}`;
    const other = creating.get(key);
    if (other) {
      await other;
      return undefined;
    }
    const id = newTopicId(context.at);
    const inserting = insert(context, { id, name }).finally(() => creating.delete(key));
    creating.set(key, inserting);
    return (await inserting) ? id : undefined;
  };

  return guardStore({
    ...projectRows(topics, indexes, indexes.list),

    find: (projectId: ProjectId, reference: TopicReference): Promise<TopicDocument | null> =>
      isId(reference)
        ? topics.findOne({ projectId, _id: reference, ...notDeleted })
        : topics.findOne({ projectId, name: reference, ...notDeleted }, { hint: indexName(indexes.name) }),

    /** False when the id or the name is taken. */
    insert,

    /** The topics of these names; missing ones are created. A topic that is being deleted is left out: its name is not free yet. */
    ensure: async (context: EventContext, names: readonly string[]) => {
      const { projectId } = context;
      const created: TopicId[] = [];
      let found = names.length === 0 ? [] : await findNamed({ projectId, names });
      const missing = names.filter((name) => !found.some((topic) => topic.name === name));
      if (missing.length > 0) {
        for (const name of missing) {
          const id = await create(context, name);
          if (id !== undefined) created.push(id);
        }
        // Another process may have created some of them.
        found = await findNamed({ projectId, names });
      }
      return { topics: found.filter(({ deletedAt }) => deletedAt === undefined).map(rowOf), created };
    },

    list: (projectId: ProjectId, request: ListRequest, prefix?: string): Promise<PageOf<TopicDocument>> =>
      findPage(topics, {
        filter: { projectId, ...(prefix !== undefined && { name: beginsWith(prefix) }), ...notDeleted },
        ...(prefix === undefined
          ? { hint: indexName(indexes.list), firstId: firstTopicId }
          : { hint: indexName(indexes.name), sort: "name" }),
        request,
        counts,
      }),

    setClosed: (projectId: ProjectId, _id: TopicId, closed: boolean) =>
      topics.findOneAndUpdate({ projectId, _id, ...notDeleted }, { $set: { closed } }, { returnDocument: "after" }),

    /** The first step of a deletion. False when there is no such topic. */
    markDeleted: async (context: EventContext, topic: TopicRow): Promise<boolean> => {
      const { projectId, at } = context;
      const { id, name } = topic;
      // Also ends every subscription to the topic; devices get no events of their own.
      const deleted = registryEvent(context, "TopicDeletedV1", id, { topic_id: id, topic: name });
      const { modifiedCount } = await topics.updateOne(
        { projectId, _id: id, ...notDeleted },
        { $set: { deletedAt: at }, $push: { outbox: deleted } },
      );
      return modifiedCount > 0;
    },

    /** Topics of all projects whose deletion is in progress, oldest first. */
    deleting: (limit: number): Promise<TopicDocument[]> => findDeleted(topics, limit),

    /** The last step of a deletion: frees the name, and removes the topic once its event is published. */
    finishDeletion: async (projectId: ProjectId, id: TopicId, at: Date): Promise<void> => {
      // No topic can have an id as its name.
      const set = { $set: { sweptAt: at, name: id } };
      await topics.updateOne({ projectId, _id: id, deletedAt: { $exists: true }, sweptAt: { $exists: false } }, set);
      await topics.deleteOne({ projectId, _id: id, sweptAt: { $exists: true }, outbox: { $exists: false } });
    },
  });
};
