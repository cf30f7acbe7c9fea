import { randomUUID } from "node:crypto";
import type { ProjectId } from "@herald/contracts";
import {
  ensureIndexes,
  guardStore,
  type IndexSpec,
  indexName,
  insertNew,
  type RemovedBatch,
  removeFirst,
  retentionBatch,
  upsertOnce,
} from "@herald/mongo";
import type { Collection, Db } from "mongodb";
import type { Contribution } from "../domain/stats-delta.ts";

/**
 * Contributions of one project that came together, as they are stored: none of them counts unless all do. `folded` is there, and false,
 * until they are in the rollups.
 */
type ContributionDocument = Pick<Contribution, "projectId" | "kind" | "parts"> & {
  /** `<project>/<random>`, so that a project's lie together. */
  readonly _id: string;
  /** The ids of its contributions: no two documents have one in common. Older versions stored each alone, under `<project>/<id>`. */
  readonly keys?: readonly string[];
  /** How many parts it has; absent on what older versions stored, which is one. */
  readonly size?: number;
  readonly folded?: false;
  /** When the last of what it counts happened; absent on what older versions stored. */
  readonly at?: Date;
};

/** What a fold adds to the rollups. */
type Folding = Pick<Contribution, "projectId" | "parts">;

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

/** What makes a contribution count once. Marking a document as folded writes all of its entries again, so they are short. */
const byKey = {
  fields: { projectId: 1, keys: 1 },
  purpose: "unique",
  unique: true,
  partial: { keys: { $exists: true } },
} as const satisfies IndexSpec;

const byTime = { fields: { at: 1 }, purpose: "retention" } as const satisfies IndexSpec;

/** A page of a deletion: small enough to let other writes through between two. */
const deletionPage = 2_000;

/** Tries to store what others store at the same moment: each time somebody's is there afterwards. */
const maxTries = 10;

/** Parts of documents that this process stored and nobody may have folded yet: one or two megabytes. Others are read. */
const maxRemembered = 4_000;

const lastSlot = ({ parts }: Contribution): Date => new Date(Math.max(0, ...parts.map(({ slot }) => slot.getTime())));

const fullKey = ({ projectId, _id }: Pick<Contribution, "projectId" | "_id">): string => `${projectId}/${_id}`;

/**
 * Puts contributions into documents: together what is of one project, kind and last quarter of an hour, so that retention and a rebuild
 * take or leave all of a document.
 */
const documentsOf = (contributions: Iterable<Contribution>): Required<ContributionDocument>[] => {
  const groups = Map.groupBy(contributions, (one) => `${one.projectId}/${one.kind}/${lastSlot(one).getTime()}`);
  return [...groups.values()].flatMap((group) => {
    const [one] = group;
    if (one === undefined) return [];
    const { projectId, kind } = one;
    const keys = group.map(({ _id }) => _id);
    const parts = group.flatMap((each) => each.parts);
    const _id = `${projectId}/${randomUUID()}`;
    return [{ _id, projectId, kind, keys, size: parts.length, parts, at: lastSlot(one), folded: false }];
  });
};

/** What messages added to the statistics, each once. Every function throws `database-unavailable` when the database is. */
export const createContributionStore = (db: Db) => {
  const contributions: Collection<ContributionDocument> = db.collection("contributions");
  const folds: Collection<FoldDocument> = db.collection("folds");
  const remembered = new Map<string, Folding>();
  let parts = 0;
  const forget = (ids: Iterable<string>) => {
    for (const id of ids) {
      parts -= remembered.get(id)?.parts.length ?? 0;
      remembered.delete(id);
    }
  };
  const remember = (documents: readonly ContributionDocument[]) => {
    for (const { _id, projectId, parts: own } of documents) {
      remembered.set(_id, { projectId, parts: own });
      parts += own.length;
    }
    for (const id of remembered.keys()) {
      if (parts <= maxRemembered) return;
      forget([id]);
    }
  };

  /** The full keys of contributions that are stored, among them those of `keys`. */
  const storedKeys = async (projectIds: readonly ProjectId[], keys: readonly string[]): Promise<Set<string>> => {
    const found = await contributions
      .find(
        { projectId: { $in: [...projectIds] }, keys: { $exists: true, $in: [...keys] } },
        { hint: indexName(byKey), projection: { projectId: 1, keys: 1 } },
      )
      .toArray();
    return new Set(found.flatMap(({ projectId, keys = [] }) => keys.map((_id) => fullKey({ projectId, _id }))));
  };

  return guardStore({
    ensureIndexes: () => ensureIndexes(contributions, [byKey, notFolded, byTime]),

    /** Stores contributions that are to be counted, each once; those of one project, kind and quarter of an hour in one write. */
    put: async (batch: readonly Contribution[]): Promise<void> => {
      let left = new Map(batch.map((one) => [fullKey(one), one]));
      for (let tries = 0; left.size > 0; tries++) {
        if (tries === maxTries) throw new Error("contributions are refused as duplicates of some that are not there");
        const documents = documentsOf(left.values());
        const refused = new Set(await insertNew<ContributionDocument>(contributions, documents));
        remember(documents.filter((document) => !refused.has(document)));
        if (refused.size === 0) return;
        // Some of a refused document's are stored already, by whom ever; the others go again without them.
        const of = documents.filter((document) => refused.has(document));
        const known = await storedKeys(
          of.map(({ projectId }) => projectId),
          of.flatMap(({ keys }) => keys),
        );
        const again = new Map<string, Contribution>();
        for (const { projectId, keys } of of)
          for (const _id of keys) {
            const key = fullKey({ projectId, _id });
            const one = left.get(key);
            if (one !== undefined && !known.has(key)) again.set(key, one);
          }
        left = again;
      }
    },

    /** Which of the ids within a project were put. */
    known: async (projectId: ProjectId, ids: readonly string[]): Promise<Set<string>> => {
      const keys = await storedKeys([projectId], ids);
      const alone = ids.map((_id) => fullKey({ projectId, _id })).filter((key) => !keys.has(key));
      const found = await contributions
        .find({ projectId, _id: { $in: alone } }, { hint: "_id_", projection: { _id: 1 } })
        .toArray();
      for (const { _id } of found) keys.add(_id);
      return new Set(ids.filter((_id) => keys.has(fullKey({ projectId, _id }))));
    },

    /** Documents whose contributions are in no rollup yet, by their ids, and how many parts they have. */
    findNotFolded: (limit: number): Promise<{ _id: string; size?: number }[]> =>
      contributions
        .find({ folded: false }, { hint: indexName(notFolded), projection: { _id: 1, size: 1 } })
        .limit(limit)
        .toArray(),

    /** By the ids that {@link findNotFolded} gave; what this process stored is not read again. */
    get: async (ids: readonly string[]): Promise<Folding[]> => {
      const own = ids.flatMap((id) => remembered.get(id) ?? []);
      const others = ids.filter((id) => !remembered.has(id));
      if (others.length === 0) return own;
      // In one answer, since rows that are marked between two can be in both.
      const found = await contributions
        .find(
          { _id: { $in: others } },
          { hint: "_id_", projection: { projectId: 1, parts: 1 }, batchSize: others.length + 1 },
        )
        .toArray();
      return [...own, ...found];
    },

    markFolded: async (ids: readonly string[]): Promise<void> => {
      await contributions.updateMany({ _id: { $in: [...ids] } }, { $unset: { folded: "" } }, { hint: "_id_" });
      forget(ids);
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
