import type { ProjectId } from "@herald/contracts";
import {
  ensureIndexes,
  guardStore,
  type IndexSpec,
  indexName,
  insertMissing,
  type RemovedBatch,
  removeFirst,
  retentionBatch,
  upsertOnce,
} from "@herald/mongo";
import type { Collection, Db } from "mongodb";
import type { Contribution } from "../domain/contribution.ts";

/** A contribution as it is stored. `folded` is there, and false, until it is in the rollups. */
type ContributionDocument = Contribution & {
  readonly folded?: false;
  /** When the last of what it counts happened; absent on what older versions stored. */
  readonly at?: Date;
};

/**
 * The one fold that may be under way. Its contributions are added to each rollup at most once, because a rollup remembers the number of
 * the last fold it took, and number n + 1 begins only when n is in every rollup.
 */
type FoldDocument = {
  readonly _id: "head";
  readonly number: number;
  readonly done: boolean;
  readonly contributions: readonly string[];
  /** Who folds, and since when: others leave it alone for a while. */
  readonly by: string;
  readonly at: Date;
};
export type Fold = Omit<FoldDocument, "_id">;

const notFolded = {
  fields: { folded: 1 },
  purpose: "fold",
  partial: { folded: false },
} as const satisfies IndexSpec;

const byTime = { fields: { at: 1 }, purpose: "retention" } as const satisfies IndexSpec;

/** A page of a deletion: small enough to let other writes through between two. */
const deletionPage = 2_000;

/** An id within a project, so that a project's contributions lie together. */
const documentId = ({ projectId, _id }: Pick<Contribution, "projectId" | "_id">): string => `${projectId}/${_id}`;

const lastSlot = ({ parts }: Contribution): Date => new Date(Math.max(0, ...parts.map(({ slot }) => slot.getTime())));

/** What messages added to the statistics, each once. Every function throws `database-away` when the database is. */
export const createContributionStore = (db: Db) => {
  const contributions: Collection<ContributionDocument> = db.collection("contributions");
  const folds: Collection<FoldDocument> = db.collection("folds");
  return guardStore({
    ensureIndexes: () => ensureIndexes(contributions, [notFolded, byTime]),

    /** Stores contributions that are to be counted; one that is there already stays as it is. */
    put: async (batch: readonly Contribution[]): Promise<void> => {
      const documents = batch.map((one) => ({
        ...one,
        _id: documentId(one),
        folded: false as const,
        at: lastSlot(one),
      }));
      await insertMissing<ContributionDocument>(contributions, documents);
    },

    /** Which of the ids within a project were put. */
    known: async (projectId: ProjectId, ids: readonly string[]): Promise<Set<string>> => {
      const wanted = ids.map((_id) => documentId({ projectId, _id }));
      const found = await contributions
        .find({ projectId, _id: { $in: wanted } }, { hint: "_id_", projection: { _id: 1 } })
        .toArray();
      return new Set(found.map(({ _id }) => _id.slice(projectId.length + 1)));
    },

    findNotFolded: (limit: number): Promise<{ _id: string }[]> =>
      contributions
        .find({ folded: false }, { hint: indexName(notFolded), projection: { _id: 1 } })
        .limit(limit)
        .toArray(),

    /** By the ids that {@link findNotFolded} gave; in one answer, since rows that are marked between two can be in both. */
    get: (ids: readonly string[]): Promise<Contribution[]> =>
      contributions
        .find({ _id: { $in: [...ids] } }, { hint: "_id_", projection: { folded: 0 }, batchSize: ids.length + 1 })
        .toArray(),

    markFolded: async (ids: readonly string[]): Promise<void> => {
      await contributions.updateMany({ _id: { $in: [...ids] } }, { $unset: { folded: "" } }, { hint: "_id_" });
    },

    /** The fold that is under way, or was last. */
    fold: async (): Promise<Fold> => {
      const found = await folds.findOne({ _id: "head" });
      if (found) return found;
      const nothing: Fold = { number: 0, done: true, contributions: [], by: "", at: new Date(0) };
      await upsertOnce(() => folds.updateOne({ _id: "head" }, { $setOnInsert: nothing }, { upsert: true }));
      return (await folds.findOne({ _id: "head" })) ?? nothing;
    },

    /** Begins the fold after `last`. False when somebody else did. */
    beginFold: async (last: Fold, next: Pick<Fold, "contributions" | "by" | "at">): Promise<boolean> => {
      const { modifiedCount } = await folds.updateOne(
        { _id: "head", number: last.number, done: true },
        { $set: { ...next, number: last.number + 1, done: false } },
      );
      return modifiedCount === 1;
    },

    /** All rollups have it, and its contributions are marked. */
    endFold: async (number: number): Promise<void> => {
      await folds.updateOne({ _id: "head", number }, { $set: { done: true, contributions: [] } });
    },

    /** Makes deliveries since then count again and those of opens never: for a rebuild, which counts opens from their rows. */
    startOver: async (since: Date): Promise<void> => {
      await contributions.deleteMany({ kind: "scan" });
      await contributions.updateMany({ kind: "opens" }, { $unset: { folded: "" } });
      await contributions.updateMany(
        { kind: "deliveries", "parts.slot": { $gte: since } },
        { $set: { folded: false } },
      );
    },

    /** Removes a batch of those that are counted and older. */
    removeOld: async (before: Date): Promise<RemovedBatch> => {
      const old = { at: { $lt: before }, folded: { $exists: false } };
      const { length } = await removeFirst(contributions, old, { hint: indexName(byTime), sort: byTime.fields });
      return { removed: length, more: length === retentionBatch };
    },

    /** Removes contributions of a project, a page at a time. False when none is left. */
    removePage: async (projectId: ProjectId): Promise<boolean> => {
      const range = { projectId, _id: { $gte: `${projectId}/`, $lt: `${projectId}0` } };
      const page = await contributions
        .find(range, { hint: "_id_", projection: { _id: 1 } })
        .limit(deletionPage)
        .toArray();
      if (page.length === 0) return false;
      await contributions.deleteMany({ projectId, _id: { $in: page.map(({ _id }) => _id) } });
      return true;
    },
  });
};

export type ContributionStore = ReturnType<typeof createContributionStore>;
