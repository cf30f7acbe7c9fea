import type { ProjectId, Tag } from "@herald/contracts";
import { createByteCache } from "@herald/kit";
import {
  byIndex,
  findByIds,
  guardStore,
  type IndexSpec,
  insertMissing,
  projectRows,
  type RemovedBatch,
} from "@herald/mongo";
import type { Collection, Db } from "mongodb";
import type { RollupScope, TagScope } from "../domain/aggregate.ts";
import type { StatsDelta } from "../domain/stats-delta.ts";
import {
  type Dimension,
  maxNamed,
  maxValuesOf,
  monthOf,
  monthsOf,
  nextMonth,
  partsOf,
  valuesIn,
  type WantedTags,
  wantedKey,
} from "../domain/tags.ts";
import type { RollupStore } from "./rollup-store.ts";

/** The values of a dimension that have statistics of their own in a month: the first to arrive. Values are added, never removed. */
type TagValuesDocument = {
  /** `<project>/<dimension>/<month>`. */
  readonly _id: string;
  readonly projectId: ProjectId;
  readonly dimension: Dimension;
  readonly month: Date;
  readonly values: readonly string[];
  /** The number of values. */
  readonly size: number;
  /** Some of the values beyond the limit. */
  readonly others?: readonly string[];
};

const indexes = {
  byMonth: { fields: { month: 1 }, purpose: "retention" },
} as const satisfies Record<string, IndexSpec>;

/** A thousand values of 64 characters are 128 KB; a project uses a few labels. */
const maxCacheBytes = 16 * 1_048_576;

type Known = { readonly values: ReadonlySet<string>; readonly isFull: boolean; readonly named: Set<string> };
const sizeOfKnown = ({ values, named }: Known): number =>
  [...values, ...named].reduce((bytes, value) => bytes + 2 * value.length + 64, 0);

/** Decides which values have statistics of their own. Every function throws `database-unavailable` while the database is unavailable. */
export const createTagValueStore = (db: Db) => {
  const collection: Collection<TagValuesDocument> = db.collection("tagValues");
  const cache = createByteCache<string, Known>({
    name: "tag-values",
    maxBytes: maxCacheBytes,
    sizeOf: sizeOfKnown,
  });

  /** Adds values while there is room. False when another process changed the document. */
  const add = async (of: WantedTags, found: TagValuesDocument | null, added: readonly string[]): Promise<boolean> => {
    const { projectId, dimension, month } = of;
    const _id = wantedKey(of);
    if (found) {
      const size = found.size + added.length;
      const update = { $push: { values: { $each: [...added] } }, $set: { size } };
      return (await collection.updateOne({ _id, projectId, size: found.size }, update)).modifiedCount === 1;
    }
    return insertMissing(collection, [{ _id, projectId, dimension, month, values: added, size: added.length }]);
  };

  /** Stores some of the values beyond the limit, so that statistics can name them. */
  const name = async (of: WantedTags, { values, named }: Known): Promise<void> => {
    const others = [...of.values].filter((value) => !values.has(value) && !named.has(value));
    const added = others.slice(0, maxNamed - named.size);
    if (added.length === 0) return;
    await collection.updateOne(
      { _id: wantedKey(of), projectId: of.projectId },
      { $addToSet: { others: { $each: added } } },
    );
    for (const value of added) named.add(value);
  };

  /**
   * The values that have statistics of their own. Admitted values stay admitted, and full documents stay full: a run that is
   * repeated after a crash decides the same.
   */
  const admit = async (of: WantedTags): Promise<ReadonlySet<string>> => {
    const key = wantedKey(of);
    const max = maxValuesOf(of.dimension);
    let known = cache.get(key);
    while (!known?.isFull && ![...of.values].every((value) => known?.values.has(value))) {
      const found = await collection.findOne({ _id: key, projectId: of.projectId });
      const values = new Set(found?.values);
      const added = [...of.values]
        .filter((value) => !values.has(value))
        .toSorted()
        .slice(0, max - values.size);
      if (added.length > 0 && !(await add(of, found, added))) continue;
      for (const value of added) values.add(value);
      known = { values, isFull: values.size >= max, named: new Set(found?.others) };
      cache.set(key, known);
    }
    if (known?.isFull) await name(of, known);
    return known?.values ?? new Set();
  };

  return guardStore({
    ...projectRows(collection, indexes),

    /** Decides which scopes count the values of the deltas: the scope of a tag at a time. Costs nothing if the deltas have none. */
    scopesOf: async (deltas: readonly Pick<StatsDelta, "projectId" | "increments">[]) => {
      const wanted = [...valuesIn(deltas).values()];
      const admitted = new Map<string, ReadonlySet<string>>();
      const isAdmitted = (projectId: ProjectId, dimension: Dimension, month: Date, value: string): boolean =>
        admitted.get(wantedKey({ projectId, dimension, month }))?.has(value) ?? false;
      const hasName = ({ projectId, dimension, month }: Omit<WantedTags, "values">): boolean =>
        !dimension.startsWith("label/") || isAdmitted(projectId, "label", month, dimension.slice("label/".length));
      // The names of labels first: the values of a label without statistics need no room.
      for (const of of wanted) if (of.dimension === "label") admitted.set(wantedKey(of), await admit(of));
      for (const of of wanted)
        if (of.dimension !== "label" && hasName(of)) admitted.set(wantedKey(of), await admit(of));
      return (projectId: ProjectId, tag: Tag, at: Date): TagScope => {
        const { dimension, value } = partsOf(tag);
        const month = monthOf(at);
        if (!hasName({ projectId, dimension, month })) return "other/label";
        return isAdmitted(projectId, dimension, month, value) ? tag : `other/${dimension}`;
      };
    },

    /** Some of the values of a dimension that were counted together, as `other`, in a range. */
    others: async (projectId: ProjectId, dimension: Dimension, from: Date, to: Date): Promise<string[]> => {
      const ids = monthsOf(from, to).map((month) => wantedKey({ projectId, dimension, month }));
      const found = await findByIds(collection, ids, { projectId }, { projection: { others: 1 } });
      return [...new Set(found.flatMap(({ others = [] }) => others))];
    },

    /** Whether a value had no statistics of its own in some month of a range, because other values came first. */
    isBeyond: async (
      projectId: ProjectId,
      { dimension, value }: { dimension: Dimension; value: string },
      { from, to }: { from: Date; to: Date },
    ): Promise<boolean> => {
      const ids = monthsOf(from, to).map((month) => wantedKey({ projectId, dimension, month }));
      const full = { projectId, _id: { $in: ids }, size: { $gte: maxValuesOf(dimension) }, values: { $ne: value } };
      return (await collection.countDocuments(full, { hint: "_id_", limit: 1 })) > 0;
    },

    /** Removes a batch of the rollups of the oldest month before `before`, or the month itself when none is left. */
    removeOld: async (before: Date, rollups: Pick<RollupStore, "removeScopes">): Promise<RemovedBatch> => {
      const [oldest] = await collection
        .find({ month: { $lt: monthOf(before) } }, byIndex(indexes.byMonth))
        .limit(1)
        .toArray();
      if (oldest === undefined) return { removed: 0, more: false };
      const { _id, projectId, dimension, month, values } = oldest;
      const scopes: RollupScope[] = [
        ...values.map((value) => `${dimension}/${value}` as TagScope),
        `other/${dimension}`,
        `hour/${dimension}`,
        `day/${dimension}`,
      ];
      const removed = await rollups.removeScopes(projectId, scopes, nextMonth(month));
      if (removed > 0) return { removed, more: true };
      await collection.deleteOne({ _id, projectId });
      return { removed: 1, more: true };
    },
  });
};

export type TagValueStore = ReturnType<typeof createTagValueStore>;
