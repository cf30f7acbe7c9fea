import { firstNotificationId, type NotificationId, type ProjectId } from "@herald/contracts";
import {
  anyOf,
  byIndex,
  deadlineOptions,
  findByIds,
  guardStore,
  type IndexSpec,
  indexName,
  insertNew,
  projectRows,
  type RemovedBatch,
  removeByProject,
  removeFirst,
  retryConflicts,
} from "@herald/mongo";
import type { Collection, Db } from "mongodb";
import { type RollupChange, type RollupScope, rollupId } from "../domain/aggregate.ts";
import { type RangePart, unitMs } from "../domain/intervals.ts";
import type { HourFigures, OpenFigures, ValueFigures } from "../domain/stats.ts";
import type { Dimension } from "../domain/tags.ts";

/** The figures of one scope in one hour or day, or of all opens of a notification. */
type RollupDocument = OpenFigures & {
  /** `<project>/<scope>/<hour>`. */
  readonly _id: string;
  readonly projectId: ProjectId;
  readonly scope: RollupScope;
  /** Absent on a total. */
  readonly hour?: Date;
  /** The number of the last aggregation run that it includes. */
  readonly run: number;
} & Pick<HourFigures, "quarters"> &
  Pick<ValueFigures, "values">;

/** The figures of one hour, and their scope. */
export type ScopedHour = HourFigures & { readonly scope: RollupScope };

const indexes = {
  byHour: { fields: { projectId: 1, scope: 1, hour: 1 }, purpose: "statistics" },
} as const satisfies Record<string, IndexSpec>;

/** The first counts of a notification come that soon after it was accepted, so its hour is probably not stored yet. */
const newMs = 5_000;
/** FerretDB refuses more than 25,000 writes a batch; a thousand keep the statements small. */
const writesPage = 1_000;
/** Rollups of all values of a dimension that are read at once: up to a few hundred kilobytes each. */
const valuesPage = 16;
/** Rollups that one statement of a rebuild scans, in less than a second. */
const clearedPage = 20_000;

/** Updates an existing rollup that does not include the run yet. */
const updateOf = (number: number, { _id, projectId, adds, first, last }: RollupChange) => ({
  updateOne: {
    filter: { _id, projectId, run: { $lt: number } },
    update: {
      $inc: Object.fromEntries(adds),
      $set: { run: number },
      ...(first && last && { $min: { first }, $max: { last } }),
    },
  },
});

type Figures = { [name: string]: Figures | number };

/** A new rollup with only this change. */
const rollupOf = (number: number, change: RollupChange): RollupDocument => {
  const { _id, projectId, scope, hour, adds, first, last } = change;
  const figures: Figures = {};
  for (const [path, count] of adds) {
    const names = path.split(".");
    const field = names.pop() ?? path;
    let inside = figures;
    for (const name of names) {
      const next = (inside[name] ?? {}) as Figures;
      inside[name] = next;
      inside = next;
    }
    inside[field] = count;
  }
  return {
    _id,
    projectId,
    scope,
    ...(hour && { hour }),
    run: number,
    ...(first && last && { first, last }),
    ...figures,
  };
};

/** Only aggregation and rebuild write rollups. Every function throws `database-unavailable` while the database is unavailable. */
export const createRollupStore = (db: Db) => {
  const rollups: Collection<RollupDocument> = db.collection("rollups");

  const findExisting = async (changes: readonly RollupChange[]): Promise<Set<string>> => {
    if (changes.length === 0) return new Set();
    const ids = changes.map(({ _id }) => _id);
    const filter = { projectId: anyOf(changes.map(({ projectId }) => projectId)) };
    return new Set((await findByIds(rollups, ids, filter, { projection: { _id: 1 } })).map(({ _id }) => _id));
  };

  const readByHour = () => ({ hint: indexName(indexes.byHour), ...deadlineOptions() });

  return guardStore({
    ...projectRows(rollups, indexes, indexes.byHour),

    /** Adds the changes of run `number` to the rollups that do not include it yet. */
    add: async (number: number, changes: readonly RollupChange[]): Promise<void> => {
      for (let at = 0; at < changes.length; at += writesPage) {
        const page = changes.slice(at, at + writesPage);
        // Finding the existing rollups and inserting the others costs the database a third of upserting all of them. What is probably
        // new is not looked for: the insert refuses what is not.
        const firstNew = `hours/${firstNotificationId(new Date(Date.now() - newMs))}`;
        const existing = await findExisting(
          page.filter(({ scope }) => !scope.startsWith("hours/") || scope < firstNew),
        );
        const missing = page.filter(({ _id }) => !existing.has(_id)).map((change) => rollupOf(number, change));
        for (const { _id } of await insertNew(rollups, missing)) existing.add(_id);
        const writes = page.filter(({ _id }) => existing.has(_id)).map((change) => updateOf(number, change));
        if (writes.length > 0) await retryConflicts(() => rollups.bulkWrite(writes, { ordered: false }));
      }
    },

    /** The hours of a range that have figures of these scopes. */
    hours: (projectId: ProjectId, scopes: readonly RollupScope[], from: Date, to: Date): Promise<ScopedHour[]> => {
      const start = new Date(Math.floor(from.getTime() / unitMs.hour) * unitMs.hour);
      const filter = { projectId, scope: { $in: [...scopes] }, hour: { $gte: start, $lt: to } };
      const projection = { scope: 1, hour: 1, quarters: 1 };
      return rollups.find<ScopedHour>(filter, { ...readByHour(), projection, batchSize: 10_000 }).toArray();
    },

    /** Figures of all values of a dimension, by the hours or days that begin in a range. */
    eachOfValues: async (
      projectId: ProjectId,
      dimension: Dimension,
      { unit, from, to }: Omit<RangePart, "unit"> & { readonly unit: keyof typeof unitMs },
      visit: (figures: ValueFigures) => void,
    ): Promise<void> => {
      const filter = { projectId, scope: `${unit}/${dimension}` as const, hour: { $gte: from, $lt: to } };
      const options = { ...readByHour(), projection: { hour: 1, values: 1 }, batchSize: valuesPage };
      for await (const figures of rollups.find<ValueFigures>(filter, options)) visit(figures);
    },

    /** All aggregated opens of one notification. */
    total: async (projectId: ProjectId, id: NotificationId): Promise<OpenFigures> =>
      (await rollups.findOne({ projectId, _id: rollupId(projectId, `total/${id}`) })) ?? {},

    /** The same for several notifications; notifications without opens are missing. */
    totals: async (projectId: ProjectId, ids: readonly NotificationId[]): Promise<Map<string, OpenFigures>> => {
      const wanted = new Map(ids.map((id) => [rollupId(projectId, `total/${id}`), id]));
      const found = await findByIds(rollups, wanted.keys(), { projectId });
      return new Map(found.map((total) => [wanted.get(total._id) ?? "", total]));
    },

    /** For a rebuild: removes hours from `since` on, and totals of notifications accepted since then. */
    clear: async (since: Date): Promise<void> => {
      const total = { $gte: `total/${firstNotificationId(since)}`, $lt: "total0" } as unknown as RollupScope;
      // In pages: one statement would take longer than a connection waits.
      for (let after = ""; ; ) {
        const [last] = await rollups
          .find(
            { _id: { $gt: after } },
            { hint: "_id_", projection: { _id: 1 }, sort: { _id: 1 }, skip: clearedPage, limit: 1 },
          )
          .toArray();
        const page = { $gt: after, ...(last && { $lte: last._id }) };
        await rollups.deleteMany({ _id: page, $or: [{ hour: { $gte: since } }, { scope: total }] });
        if (last === undefined) return;
        after = last._id;
      }
    },

    /** Removes a batch of old hours and of figures of notifications accepted before `before`, from the next project after `after` on. */
    removeOld: (before: Date, after: string | undefined): Promise<RemovedBatch> => {
      const first = firstNotificationId(before);
      const filters = (projectId: string) => [
        { projectId, scope: "project", hour: { $lt: before } },
        ...["hours", "total"].map((scope) => ({ projectId, scope: { $gte: `${scope}/`, $lt: `${scope}/${first}` } })),
      ];
      return removeByProject(rollups, { ...byIndex(indexes.byHour), filters }, after);
    },

    /** Removes a batch of hours of these scopes that are older than `before`. Resolves to how many. */
    removeScopes: async (projectId: ProjectId, scopes: readonly RollupScope[], before: Date): Promise<number> => {
      const filter = { projectId, scope: { $in: [...scopes] }, hour: { $lt: before } };
      return (await removeFirst(rollups, filter, byIndex(indexes.byHour))).length;
    },
  });
};

export type RollupStore = ReturnType<typeof createRollupStore>;
