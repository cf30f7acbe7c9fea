import { firstNotificationId, idTime, type NotificationId, type ProjectId } from "@herald/contracts";
import {
  areDuplicateKeys,
  ensureIndexes,
  forCaller,
  guardStore,
  type IndexSpec,
  indexName,
  insertNew,
  type RemovedBatch,
  removeByProject,
  retryConflicts,
} from "@herald/mongo";
import type { AnyBulkWriteOperation, Collection, Db } from "mongodb";
import { type Addition, type RollupOf, rollupId } from "../domain/aggregate.ts";
import type { HourFigures, OpenFigures, Quarter } from "../domain/stats.ts";

/** The figures of a project or a notification in one hour, or of all opens of a notification. */
type RollupDocument = OpenFigures & {
  /** `<project>/<what>/<hour>`. */
  readonly _id: string;
  readonly projectId: ProjectId;
  readonly what: RollupOf;
  /** Absent on a total. */
  readonly hour?: Date;
  /** The number of the last fold that is in it. */
  readonly fold: number;
  readonly quarters?: Readonly<Record<string, Quarter>>;
};

const byHour = {
  fields: { projectId: 1, what: 1, hour: 1 },
  purpose: "statistics",
} as const satisfies IndexSpec;

const hourMs = 3_600_000;
const deletionPage = 2_000;
/** FerretDB refuses more than 25,000 writes a batch; a thousand keep a fold's statements small. */
const writesPage = 1_000;

const write = (number: number, addition: Addition): AnyBulkWriteOperation<RollupDocument> => {
  const { _id, projectId, what, hour, adds, first, last } = addition;
  return {
    updateOne: {
      // One that has this fold already does not match, so that the upsert tries to insert it and is refused.
      filter: { _id, fold: { $lt: number } },
      update: {
        $inc: Object.fromEntries(adds),
        $set: { fold: number },
        $setOnInsert: { projectId, what, ...(hour === undefined ? {} : { hour }) },
        ...(first === undefined ? {} : { $min: { first } }),
        ...(last === undefined ? {} : { $max: { last } }),
      },
      upsert: true,
    },
  };
};

type Figures = { [name: string]: Figures | number };

/** The document that {@link write} would insert. */
const firstOf = (number: number, { _id, projectId, what, hour, adds }: Addition): RollupDocument => {
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
  return { _id, projectId, what, ...(hour === undefined ? {} : { hour }), fold: number, ...figures };
};

/** Sums by the hour, made by folds alone. Every function throws `database-unavailable` when the database is. */
export const createRollupStore = (db: Db) => {
  const rollups: Collection<RollupDocument> = db.collection("rollups");
  return guardStore({
    ensureIndexes: () => ensureIndexes(rollups, [byHour]),

    /** Adds what fold `number` has to the rollups that do not have it yet. */
    add: async (number: number, additions: readonly Addition[]): Promise<void> => {
      // An insert of many costs the database a fifth of as many upserts.
      const { first = [], later = [] } = Object.groupBy(additions, ({ fresh }) => (fresh ? "first" : "later"));
      const inserts = first.map((addition) => firstOf(number, addition));
      const there = new Set((await insertNew(rollups, inserts)).map(({ _id }) => _id));
      const updates = [...later, ...first.filter(({ _id }) => there.has(_id))];
      for (let at = 0; at < updates.length; at += writesPage) {
        const writes = updates.slice(at, at + writesPage).map((addition) => write(number, addition));
        await retryConflicts(async () => {
          try {
            await rollups.bulkWrite(writes, { ordered: false });
          } catch (error) {
            if (!areDuplicateKeys(error)) throw error;
          }
        });
      }
    },

    /** The hours of a project or of some notifications that have figures between two times. */
    hours: (projectId: ProjectId, what: readonly RollupOf[], from: Date, to: Date): Promise<HourFigures[]> => {
      const start = new Date(Math.floor(from.getTime() / hourMs) * hourMs);
      return rollups
        .find(
          { projectId, what: { $in: [...what] }, hour: { $gte: start, $lt: to } },
          { hint: indexName(byHour), projection: { hour: 1, quarters: 1 }, batchSize: 10_000, ...forCaller() },
        )
        .toArray() as unknown as Promise<HourFigures[]>;
    },

    /** All that is known of the opens of one notification: behind by what is not folded yet. */
    total: async (projectId: ProjectId, id: NotificationId): Promise<OpenFigures> =>
      (await rollups.findOne({ projectId, _id: rollupId(projectId, `total/${id}`) })) ?? {},

    /** The same of several that were opened. */
    totals: async (projectId: ProjectId, ids: readonly NotificationId[]): Promise<Map<string, OpenFigures>> => {
      const wanted = new Map(ids.map((id) => [rollupId(projectId, `total/${id}`), id]));
      const found = await rollups.find({ projectId, _id: { $in: [...wanted.keys()] } }, { hint: "_id_" }).toArray();
      return new Map(found.map((total) => [wanted.get(total._id) ?? "", total]));
    },

    /** Removes the hours from `hour` on, and the totals of notifications that were accepted since `accepted`: for a rebuild. */
    clear: async (hour: Date, accepted: Date): Promise<void> => {
      await rollups.deleteMany({ hour: { $gte: hour } });
      for (let after = ""; ; ) {
        const page = await rollups
          .find({ _id: { $gt: after }, hour: { $exists: false } }, { hint: "_id_", projection: { what: 1 } })
          .sort({ _id: 1 })
          .limit(writesPage)
          .toArray();
        const last = page.at(-1);
        if (last === undefined) return;
        const since = page.filter(({ what }) => idTime(what.slice("total/".length)) >= accepted).map(({ _id }) => _id);
        await rollups.deleteMany({ _id: { $in: since } });
        after = last._id;
      }
    },

    /**
     * Removes a batch of a project's hours from before `before`, and of the figures of notifications that were accepted before it;
     * from the project behind `after` on.
     */
    removeOld: (before: Date, after: string | undefined): Promise<RemovedBatch> => {
      const first = firstNotificationId(before);
      const filters = (projectId: string) => [
        { projectId, what: "project", hour: { $lt: before } },
        ...["hours", "total"].map((what) => ({ projectId, what: { $gte: `${what}/`, $lt: `${what}/${first}` } })),
      ];
      return removeByProject(rollups, { hint: indexName(byHour), sort: byHour.fields, filters }, after);
    },

    /** Removes rollups of a project, a page at a time. False when none is left. */
    removePage: async (projectId: ProjectId): Promise<boolean> => {
      const page = await rollups
        .find({ projectId }, { hint: indexName(byHour), projection: { _id: 1 } })
        .limit(deletionPage)
        .toArray();
      if (page.length === 0) return false;
      await rollups.deleteMany({ projectId, _id: { $in: page.map(({ _id }) => _id) } });
      return true;
    },
  });
};

export type RollupStore = ReturnType<typeof createRollupStore>;
