import { randomUUID } from "node:crypto";
import { LRUCache } from "@herald/kit";
import {
  anyOf,
  byIndex,
  findByIds,
  guardStore,
  type IndexSpec,
  indexName,
  insertNew,
  projectRows,
  type RemovedBatch,
  removeOldest,
  upsertOnce,
} from "@herald/mongo";
import type { Collection, Db } from "mongodb";
import { groupsOf, type StatsDelta } from "../domain/stats-delta.ts";

/** Deltas of one project, stored together: all of them count or none. `aggregated` is false until they are in the rollups, then absent. */
type StatsDeltaDocument = Pick<StatsDelta, "projectId" | "kind" | "increments"> & {
  /** `<project>/<at>/<random>`: a rebuild reads the documents of an hour together, because they change the same rollups. */
  readonly _id: string;
  /** The ids of its deltas, unique within the project. */
  readonly keys: readonly string[];
  /** How many increments it has. */
  readonly size: number;
  readonly aggregated?: false;
  /** Start of the last quarter of an hour that it counts. */
  readonly at: Date;
};

type StoredDeltas = Pick<StatsDelta, "projectId" | "increments">;

/**
 * The only run that may be in progress. A rollup stores the number of the last run it took, and run n + 1 begins only when n is in every
 * rollup, so each rollup takes each delta at most once.
 */
type RunDocument = {
  readonly _id: "aggregation";
  readonly number: number;
  readonly done: boolean;
  /** Ids of the documents that it aggregates. */
  readonly deltas: readonly string[];
  /** The process that runs it, and since when: other processes wait before they take over. */
  readonly by: string;
  readonly at: Date;
  /** Progress of an interrupted rebuild. The next run of analytics removes it, because the rebuild must then start over. */
  readonly rebuild?: RebuildProgress;
};
/** `since`: the rebuild replaces the figures from this time on. `after`: the last document that it has counted. */
type RebuildProgress = { readonly since: Date; readonly after: string };
export type AggregationRun = Omit<RunDocument, "_id">;

const indexes = {
  notAggregated: { fields: { aggregated: 1 }, purpose: "aggregate", partial: { aggregated: false } },
  /** Makes a delta count once. Marking a document as aggregated rewrites its index entries, so keys are short. */
  byKey: { fields: { projectId: 1, keys: 1 }, purpose: "unique", unique: true },
  byTime: { fields: { at: 1 }, purpose: "retention" },
} as const satisfies Record<string, IndexSpec>;

/** Each try fails only if another process has stored one of the deltas in between. */
const maxTries = 10;

/** Increments that this process stored and that are not aggregated yet: one or two megabytes. Others are read from the database. */
const maxCachedIncrements = 4_000;

/** Documents that one query of a rebuild reads. */
const documentsPage = 1_000;

const lastSlotOf = ({ increments }: StatsDelta): Date =>
  new Date(Math.max(0, ...increments.map(({ slot }) => slot.getTime())));

const fullKey = ({ projectId, _id }: Pick<StatsDelta, "projectId" | "_id">): string => `${projectId}/${_id}`;
const fullKeysOf = ({ projectId, keys }: Pick<StatsDeltaDocument, "projectId" | "keys">): string[] =>
  keys.map((_id) => fullKey({ projectId, _id }));

/** Makes one document per project, kind and last quarter of an hour, so that retention and a rebuild keep or remove whole documents. */
export const statsDeltaDocuments = (deltas: Iterable<StatsDelta>): StatsDeltaDocument[] => {
  const groups = groupsOf(deltas, (one) => `${one.projectId}/${one.kind}/${lastSlotOf(one).getTime()}`);
  return groups.map((group) => {
    const [one] = group;
    const { projectId, kind } = one;
    const keys = group.map(({ _id }) => _id);
    const increments = group.flatMap((each) => each.increments);
    const at = lastSlotOf(one);
    const _id = `${projectId}/${at.toISOString()}/${randomUUID()}`;
    return { _id, projectId, kind, keys, size: increments.length, increments, at, aggregated: false };
  });
};

/** Stores the delta of each message once. Every function throws `database-unavailable` while the database is unavailable. */
export const createStatsDeltaStore = (db: Db) => {
  const deltas: Collection<StatsDeltaDocument> = db.collection("statsDeltas");
  const runs: Collection<RunDocument> = db.collection("positions");
  const cached = new LRUCache<string, StoredDeltas>({
    maxSize: maxCachedIncrements,
    sizeCalculation: ({ increments }) => Math.max(1, increments.length),
  });

  /** The full keys of all stored documents that contain a key of these. */
  const storedKeys = async (documents: readonly StatsDeltaDocument[]): Promise<Set<string>> => {
    const hint = indexName(indexes.byKey);
    const projectIds = documents.map(({ projectId }) => projectId);
    const keys = documents.flatMap((document) => document.keys);
    const found = await deltas
      .find({ projectId: anyOf(projectIds), keys: anyOf(keys) }, { hint, projection: { projectId: 1, keys: 1 } })
      .toArray();
    return new Set(found.flatMap(fullKeysOf));
  };

  return guardStore({
    ...projectRows(deltas, indexes),

    /** Stores each delta once; deltas of one project, kind and quarter of an hour share a document. */
    put: async (batch: readonly StatsDelta[]): Promise<void> => {
      let left = new Map(batch.map((one) => [fullKey(one), one]));
      for (let tries = 0; left.size > 0; tries++) {
        if (tries === maxTries) throw new Error("deltas are refused as duplicates of some that are not there");
        const documents = statsDeltaDocuments(left.values());
        const refused = await insertNew<StatsDeltaDocument>(deltas, documents);
        const ids = new Set(refused.map(({ _id }) => _id));
        for (const { _id, projectId, increments } of documents)
          if (!ids.has(_id)) cached.set(_id, { projectId, increments });
        if (refused.length === 0) return;
        // Some deltas of a refused document are stored already: retry with the others.
        const known = await storedKeys(refused);
        const retried = new Set(refused.flatMap(fullKeysOf));
        left = new Map([...left].filter(([key]) => retried.has(key) && !known.has(key)));
      }
    },

    /** Documents that are in no rollup yet. */
    findNotAggregated: (limit: number): Promise<Pick<StatsDeltaDocument, "_id" | "size">[]> =>
      deltas
        .find({ aggregated: false }, { hint: indexName(indexes.notAggregated), projection: { _id: 1, size: 1 }, limit })
        .toArray(),

    /** Deltas by the ids of their documents. Documents that this process stored come from memory. */
    get: async (ids: readonly string[]): Promise<StoredDeltas[]> => {
      const own = ids.flatMap((id) => cached.get(id) ?? []);
      const others = ids.filter((id) => !cached.has(id));
      if (others.length === 0) return own;
      // In one batch: a document that is marked between two batches could be in both.
      const found = await findByIds(deltas, others, {}, { projection: { projectId: 1, increments: 1 } });
      return [...own, ...found];
    },

    markAggregated: async (ids: readonly string[]): Promise<void> => {
      await deltas.updateMany({ _id: { $in: [...ids] } }, { $unset: { aggregated: "" } }, { hint: "_id_" });
      for (const id of ids) cached.delete(id);
    },

    /** The run in progress, or the last one. */
    lastRun: async (): Promise<AggregationRun> => {
      const found = await runs.findOne({ _id: "aggregation" });
      if (found) return found;
      const nothing: AggregationRun = { number: 0, done: true, deltas: [], by: "", at: new Date(0) };
      await upsertOnce(() => runs.updateOne({ _id: "aggregation" }, { $setOnInsert: nothing }, { upsert: true }));
      return (await runs.findOne({ _id: "aggregation" })) ?? nothing;
    },

    /** Begins the run after `last`. False when another process has begun it. */
    beginRun: async (last: AggregationRun, next: Pick<AggregationRun, "deltas" | "by" | "at">): Promise<boolean> => {
      const update = { $set: { ...next, number: last.number + 1, done: false }, $unset: { rebuild: "" as const } };
      return (
        (await runs.updateOne({ _id: "aggregation", number: last.number, done: true }, update)).modifiedCount === 1
      );
    },

    /** Call it when all rollups include the run and its documents are marked. */
    endRun: async (number: number): Promise<void> => {
      await runs.updateOne({ _id: "aggregation", number }, { $set: { done: true, deltas: [] } });
    },

    /**
     * For a rebuild: the aggregated documents after a position, by project and time, up to `maxIncrements`; at least one. The same
     * position always gives the same documents.
     */
    pageAfter: async (after: string, maxIncrements: number) => {
      const found = deltas.find(
        { _id: { $gt: after }, aggregated: { $exists: false } },
        {
          hint: "_id_",
          projection: { projectId: 1, increments: 1, size: 1 },
          sort: { _id: 1 },
          limit: documentsPage,
          // Large documents fill a page long before the limit.
          batchSize: documentsPage / 10,
        },
      );
      const page: StoredDeltas[] = [];
      let increments = 0;
      let last: string | undefined;
      for await (const { _id, projectId, increments: own, size } of found) {
        increments += size;
        if (last !== undefined && increments > maxIncrements) break;
        page.push({ projectId, increments: own });
        last = _id;
      }
      return { deltas: page, last };
    },

    /** Ends run number `number` + 1 of a rebuild. @throws Error when another run began meanwhile. */
    advanceRebuild: async (number: number, rebuild: RebuildProgress | undefined): Promise<void> => {
      const update = {
        $set: { number: number + 1, ...(rebuild && { rebuild }) },
        ...(!rebuild && { $unset: { rebuild: "" as const } }),
      };
      const { matchedCount } = await runs.updateOne({ _id: "aggregation", number, done: true }, update);
      if (matchedCount === 0) throw new Error("analytics is running: stop all of its processes, then rebuild again");
    },

    /** Removes a batch of aggregated documents that are older than `before`. */
    removeOld: (before: Date): Promise<RemovedBatch> =>
      removeOldest(deltas, { at: { $lt: before }, aggregated: { $exists: false } }, byIndex(indexes.byTime)),
  });
};

export type StatsDeltaStore = ReturnType<typeof createStatsDeltaStore>;
