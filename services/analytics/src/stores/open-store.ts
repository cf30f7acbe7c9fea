import type { DeviceId, NotificationId, ProjectId } from "@herald/contracts";
import {
  ensureIndexes,
  guardStore,
  type IndexSpec,
  indexName,
  insertMissing,
  type RemovedBatch,
  removeByProject,
} from "@herald/mongo";
import type { Collection, Db } from "mongodb";
import { type Open, openId, type ReportedOpen } from "../domain/open.ts";

/** An open as it is stored. `emitted` is there, and false, until the bus has its event. */
type OpenDocument = Open & {
  /** `<notification>/<device>`: the id that makes an open count once. */
  readonly _id: string;
  readonly emitted?: false;
  /** The report that stored it; absent on what older versions stored. */
  readonly report?: string;
};

const byTime = { fields: { projectId: 1, openedAt: 1 }, purpose: "statistics" } as const satisfies IndexSpec;
const notEmitted = {
  fields: { emitted: 1, openedAt: 1 },
  purpose: "sweep",
  partial: { emitted: false },
} as const satisfies IndexSpec;

/** The character after `/`: the ids of one notification's opens lie between the two. */
const afterSlash = "0";

/** A page of a deletion: small enough to let other writes through between two. */
const deletionPage = 2_000;

/** Stores opens, each once. Dates in, dates out; every function throws `database-unavailable` when the database is. */
export const createOpenStore = (db: Db) => {
  const opens: Collection<OpenDocument> = db.collection("opens");
  return guardStore({
    ensureIndexes: () => ensureIndexes(opens, [byTime, notEmitted]),

    /**
     * Stores opens; one that is there already stays as it is. Gives those that these reports added, now or before a crash, and
     * those whose event the bus may not have yet.
     */
    record: async (batch: readonly ReportedOpen[]): Promise<{ added: ReportedOpen[]; toEmit: Open[] }> => {
      const documents = batch.map((open) => ({ ...open, _id: openId(open), emitted: false as const }));
      if (await insertMissing(opens, documents)) return { added: [...batch], toEmit: [...batch] };
      const projectIds = [...new Set(batch.map(({ projectId }) => projectId))];
      const ids = documents.map(({ _id }) => _id);
      // In one answer: in several, a row that is marked as emitted meanwhile can be in two of them, and would count twice.
      const rows = await opens
        .find({ projectId: { $in: projectIds }, _id: { $in: ids } }, { hint: "_id_", batchSize: ids.length + 1 })
        .toArray();
      const reports = new Set(batch.map(({ report }) => report));
      return {
        added: rows.flatMap((row) =>
          row.report !== undefined && reports.has(row.report) ? [{ ...row, report: row.report }] : [],
        ),
        toEmit: rows.filter(({ emitted }) => emitted === false),
      };
    },

    /** The bus has their events. */
    markEmitted: async (emitted: readonly Open[]): Promise<void> => {
      const projectIds = [...new Set(emitted.map(({ projectId }) => projectId))];
      await opens.updateMany(
        { projectId: { $in: projectIds }, _id: { $in: emitted.map(openId) } },
        { $unset: { emitted: "" } },
        { hint: "_id_" },
      );
    },

    /** Opens from before `before` whose event a crash may have kept from the bus, oldest first. */
    findNotEmitted: (before: Date, limit: number): Promise<Open[]> =>
      opens
        .find({ emitted: false, openedAt: { $lt: before } }, { hint: indexName(notEmitted) })
        .sort({ emitted: 1, openedAt: 1 })
        .limit(limit)
        .toArray(),

    /** How many devices opened a notification, counted up to `most`. */
    count: (projectId: ProjectId, notificationId: NotificationId, most: number): Promise<number> =>
      opens.countDocuments(
        { projectId, _id: { $gte: `${notificationId}/`, $lt: `${notificationId}${afterSlash}` } },
        { hint: "_id_", limit: most },
      ),

    /** The next opens of all projects behind `after`, in the order of their ids: for a rebuild. */
    scan: (after: string, limit: number): Promise<(Open & { readonly _id: string; readonly report?: string })[]> =>
      opens
        .find({ _id: { $gt: after } }, { hint: "_id_" })
        .sort({ _id: 1 })
        .limit(limit)
        .toArray(),

    /** Removes a batch of opens from before `before`, from the project behind `after` on. */
    removeOld: (before: Date, after: string | undefined): Promise<RemovedBatch> =>
      removeByProject(
        opens,
        {
          hint: indexName(byTime),
          sort: byTime.fields,
          filters: (projectId) => [{ projectId, openedAt: { $lt: before } }],
        },
        after,
      ),

    /** The opens of some devices of one notification. */
    findOfDevices: (
      projectId: ProjectId,
      notificationId: NotificationId,
      deviceIds: readonly DeviceId[],
    ): Promise<Open[]> =>
      opens
        .find(
          { projectId, _id: { $in: deviceIds.map((deviceId) => openId({ notificationId, deviceId })) } },
          { hint: "_id_" },
        )
        .toArray(),

    /** Removes opens of a project, a page at a time. False when none is left. */
    removePage: async (projectId: ProjectId): Promise<boolean> => {
      const page = await opens
        .find({ projectId }, { hint: indexName(byTime), projection: { _id: 1 } })
        .limit(deletionPage)
        .toArray();
      if (page.length === 0) return false;
      await opens.deleteMany({ projectId, _id: { $in: page.map(({ _id }) => _id) } });
      return true;
    },
  });
};

export type OpenStore = ReturnType<typeof createOpenStore>;
