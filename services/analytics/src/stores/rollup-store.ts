import { firstNotificationId, idTime, type NotificationId, type ProjectId } from "@herald/contracts";
import {
  areDuplicateKeys,
  byIndex,
  deadlineOptions,
  ensureIndexes,
  guardStore,
  type IndexSpec,
  indexName,
  insertNew,
  type RemovedBatch,
  removeByProject,
  removeFirst,
  retryConflicts,
} from "@herald/mongo";
import type { AnyBulkWriteOperation, Collection, Db, Filter } from "mongodb";
import { type RollupChange, type RollupScope, rollupId } from "../domain/aggregate.ts";
import type { HourFigures, OpenFigures, Quarter } from "../domain/stats.ts";
import type { Dimension } from "../domain/tags.ts";

/** The figures of one scope in one hour, or of all opens of a notification. */
type RollupDocument = OpenFigures & {
  /** `<project>/<scope>/<hour>`. */
  readonly _id: string;
  readonly projectId: ProjectId;
  readonly scope: RollupScope;
  /** Absent on a total. */
  readonly hour?: Date;
  /** The number of the last aggregation run that it has. */
  readonly run: number;
  readonly quarters?: Readonly<Record<string, Quarter>>;
};

/** The figures of one hour, and whose they are. */
export type ScopedHour = HourFigures & { readonly scope: RollupScope };

const indexes = {
  byHour: { fields: { projectId: 1, scope: 1, hour: 1 }, purpose: "statistics" },
} as const satisfies Record<string, IndexSpec>;

const hourMs = 3_600_000;
/** FerretDB refuses more than 25,000 writes a batch; a thousand keep the statements small. */
const writesPage = 1_000;

const write = (number: number, change: RollupChange): AnyBulkWriteOperation<RollupDocument> => {
  const { _id, projectId, scope, hour, adds, first, last } = change;
  return {
    updateOne: {
      // A rollup that has this run does not match; the upsert then fails as a duplicate, which is ignored.
      filter: { _id, run: { $lt: number } },
      update: {
        $inc: Object.fromEntries(adds),
        $set: { run: number },
        $setOnInsert: { projectId, scope, ...(hour === undefined ? {} : { hour }) },
        ...(first === undefined ? {} : { $min: { first } }),
        ...(last === undefined ? {} : { $max: { last } }),
      },
      upsert: true,
    },
  };
};

type Figures = { [name: string]: Figures | number };

/** The document that {@link write} would insert. */
const firstOf = (number: number, { _id, projectId, scope, hour, adds }: RollupChange): RollupDocument => {
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
  return { _id, projectId, scope, ...(hour === undefined ? {} : { hour }), run: number, ...figures };
};

/** Only aggregation and rebuild write them. Every function throws `database-unavailable` when the database is. */
export const createRollupStore = (db: Db) => {
  const rollups: Collection<RollupDocument> = db.collection("rollups");

  const findHours = (filter: Filter<RollupDocument>, from: Date, to: Date) => {
    const start = new Date(Math.floor(from.getTime() / hourMs) * hourMs);
    return rollups.find(
      { ...filter, hour: { $gte: start, $lt: to } },
      {
        hint: indexName(indexes.byHour),
        projection: { scope: 1, hour: 1, quarters: 1 },
        batchSize: 10_000,
        ...deadlineOptions(),
      },
    );
  };

  return guardStore({
    ensureIndexes: () => ensureIndexes(rollups, Object.values(indexes)),

    /** Adds the changes of run `number` to the rollups that do not have it yet. */
    add: async (number: number, changes: readonly RollupChange[]): Promise<void> => {
      // Inserting many costs the database a fifth of upserting them.
      const { first = [], later = [] } = Object.groupBy(changes, ({ isNew }) => (isNew ? "first" : "later"));
      const inserts = first.map((change) => firstOf(number, change));
      const there = new Set((await insertNew(rollups, inserts)).map(({ _id }) => _id));
      const updates = [...later, ...first.filter(({ _id }) => there.has(_id))];
      for (let at = 0; at < updates.length; at += writesPage) {
        const writes = updates.slice(at, at + writesPage).map((change) => write(number, change));
        await retryConflicts(async () => {
          try {
            await rollups.bulkWrite(writes, { ordered: false });
          } catch (error) {
            if (!areDuplicateKeys(error)) throw error;
          }
        });
      }
    },

    /** Hours with figures of some scopes. */
    hours: (projectId: ProjectId, scope: readonly RollupScope[], from: Date, to: Date): Promise<ScopedHour[]> =>
      findHours({ projectId, scope: { $in: [...scope] } }, from, to).toArray() as unknown as Promise<ScopedHour[]>,

    /** The same of all values of a dimension, one by one: they may be hundreds of thousands. */
    eachHourOf: async (
      projectId: ProjectId,
      dimension: Dimension,
      { from, to }: { readonly from: Date; readonly to: Date },
      visit: (hour: ScopedHour) => void,
    ): Promise<void> => {
      const scope = { $gte: `${dimension}/`, $lt: `${dimension}0` } as unknown as RollupScope;
      for await (const hour of findHours({ projectId, scope }, from, to)) visit(hour as ScopedHour);
    },

    /** All aggregated opens of one notification. */
    total: async (projectId: ProjectId, id: NotificationId): Promise<OpenFigures> =>
      (await rollups.findOne({ projectId, _id: rollupId(projectId, `total/${id}`) })) ?? {},

    /** The same for several; those without opens are missing. */
    totals: async (projectId: ProjectId, ids: readonly NotificationId[]): Promise<Map<string, OpenFigures>> => {
      const wanted = new Map(ids.map((id) => [rollupId(projectId, `total/${id}`), id]));
      const found = await rollups.find({ projectId, _id: { $in: [...wanted.keys()] } }, { hint: "_id_" }).toArray();
      return new Map(found.map((total) => [wanted.get(total._id) ?? "", total]));
    },

    /** For a rebuild: removes hours from `hour` on, and totals of notifications accepted since `accepted`. */
    clear: async (hour: Date, accepted: Date): Promise<void> => {
      await rollups.deleteMany({ hour: { $gte: hour } });
      for (let after = ""; ; ) {
        const page = await rollups
          .find(
            { _id: { $gt: after }, hour: { $exists: false } },
            { hint: "_id_", projection: { scope: 1 }, sort: { _id: 1 }, limit: writesPage },
          )
          .toArray();
        const last = page.at(-1);
        if (last === undefined) return;
        const since = page
          .filter(({ scope }) => idTime(scope.slice("total/".length)) >= accepted)
          .map(({ _id }) => _id);
        await rollups.deleteMany({ _id: { $in: since } });
        after = last._id;
      }
    },

    /** Removes a batch of hours from before `before` and of figures of notifications accepted before it, starting with the project behind `after`. */
    removeOld: (before: Date, after: string | undefined): Promise<RemovedBatch> => {
      const first = firstNotificationId(before);
      const filters = (projectId: string) => [
        { projectId, scope: "project", hour: { $lt: before } },
        ...["hours", "total"].map((scope) => ({ projectId, scope: { $gte: `${scope}/`, $lt: `${scope}/${first}` } })),
      ];
      return removeByProject(rollups, { ...byIndex(indexes.byHour), filters }, after);
    },

    /** Removes a batch of the hours of some scopes from before `before`. Resolves to how many. */
    removeScopes: async (projectId: ProjectId, scopes: readonly RollupScope[], before: Date): Promise<number> => {
      const filter = { projectId, scope: { $in: [...scopes] }, hour: { $lt: before } };
      return (await removeFirst(rollups, filter, byIndex(indexes.byHour))).length;
    },

    /** Removes a page of a project's rollups. False when none is left. */
    removePage: async (projectId: ProjectId): Promise<boolean> =>
      (await removeFirst(rollups, { projectId }, byIndex(indexes.byHour))).length > 0,
  });
};

export type RollupStore = ReturnType<typeof createRollupStore>;
