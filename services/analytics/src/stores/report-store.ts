import type { NotificationId, ProjectId } from "@herald/contracts";
import {
  anyOf,
  beginsWith,
  byIndex,
  deadlineOptions,
  findByIds,
  guardStore,
  type IndexSpec,
  indexName,
  insertMissing,
  projectRows,
  type RemovedBatch,
  removeByProject,
} from "@herald/mongo";
import type { Collection, Db, Filter } from "mongodb";
import { type GroupedReport, type Report, reportRowId } from "../domain/report.ts";

type ReportDocument = GroupedReport & {
  /** See `reportRowId`. */
  readonly _id: string;
};

type Read = (of: {
  readonly projectId: ProjectId;
  readonly notificationId?: NotificationId | undefined;
  /** The id of a report; absent to begin. */
  readonly after?: string | undefined;
  readonly limit: number;
}) => Promise<ReportDocument[]>;

const indexes = {
  byTime: { fields: { projectId: 1, at: 1 }, purpose: "statistics" },
} as const satisfies Record<string, IndexSpec>;

/** Reports of a project by time and id, or of one notification by id. Fewer than `limit`: there are no more. */
const exportReports = (reports: Collection<ReportDocument>): Read => {
  const read = (filter: Filter<ReportDocument>, hint: string, sort: "_id" | "at", limit: number) =>
    reports
      .find(filter, { hint, limit, batchSize: limit + 1, ...deadlineOptions() })
      .sort({ [sort]: 1 })
      .toArray();

  const byTime = indexName(indexes.byTime);

  const ofNotification: Read = ({ projectId, notificationId, after, limit }) => {
    const _id = { ...beginsWith(`${notificationId}/`), ...(after !== undefined && { $gt: after }) };
    return read({ projectId, _id }, "_id_", "_id", limit);
  };

  /** The index has no ids, so reports of the same moment need a query of their own that sorts by id. */
  const ofMoment = (projectId: ProjectId, at: Date, after: string, limit: number) =>
    read({ projectId, at, _id: { $gt: after } }, byTime, "_id", limit);

  const ofProject: Read = async ({ projectId, after = "", limit }) => {
    // If retention has removed the report `after`, the export continues with the oldest one that is left.
    const options = { hint: "_id_", projection: { at: 1 } };
    let at = after === "" ? undefined : (await reports.findOne({ _id: after, projectId }, options))?.at;
    let found = at === undefined ? [] : await ofMoment(projectId, at, after, limit);
    while (found.length < limit) {
      const later = { projectId, ...(at && { at: { $gt: at } }) };
      const page = await read(later, byTime, "at", limit - found.length);
      const last = page.at(-1)?.at;
      if (last === undefined) return found;
      const whole = page.filter(({ at }) => at < last).sort(byTimeAndId);
      // The last moment may have more opens than the page.
      found = [...found, ...whole, ...(await ofMoment(projectId, last, "", limit - found.length - whole.length))];
      at = last;
    }
    return found;
  };

  return (request) => (request.notificationId === undefined ? ofProject(request) : ofNotification(request));
};

const byTimeAndId = (one: ReportDocument, other: ReportDocument): number =>
  one.at.getTime() - other.at.getTime() || (one._id < other._id ? -1 : 1);

/** Every function throws `database-unavailable` while the database is unavailable. */
export const createReportStore = (db: Db, name: "opens" | "receipts") => {
  const reports: Collection<ReportDocument> = db.collection(name);
  return guardStore({
    ...projectRows(reports, indexes, indexes.byTime),

    /** Stores new reports. Resolves to the opens that these reports added, now or in an earlier attempt: a repeat finds the same ones. */
    record: async (batch: readonly GroupedReport[]): Promise<readonly GroupedReport[]> => {
      if (
        await insertMissing(
          reports,
          batch.map((report) => ({ ...report, _id: reportRowId(report) })),
        )
      )
        return batch;
      const projectId = anyOf(batch.map((one) => one.projectId));
      const rows = await findByIds(reports, batch.map(reportRowId), { projectId });
      const groups = new Set(batch.map(({ report }) => report));
      return rows.filter(({ report }) => groups.has(report));
    },

    /** How many reports a notification has, up to `max`. */
    count: (projectId: ProjectId, notificationId: NotificationId, max: number): Promise<number> =>
      reports.countDocuments({ projectId, _id: beginsWith(`${notificationId}/`) }, { hint: "_id_", limit: max }),

    /** Removes a batch of reports older than `before`, starting with the next project after `after`. */
    removeOld: (before: Date, after: string | undefined): Promise<RemovedBatch> => {
      const filters = (projectId: string) => [{ projectId, at: { $lt: before } }];
      return removeByProject(reports, { ...byIndex(indexes.byTime), filters }, after);
    },

    export: exportReports(reports),

    find: (
      projectId: ProjectId,
      of: readonly Pick<Report, "notificationId" | "deviceId" | "kind">[],
    ): Promise<Report[]> => findByIds(reports, of.map(reportRowId), { projectId }),

    /** Removes the buttons of opens that named one which their notification does not have. */
    removeButtons: async (of: readonly GroupedReport[]): Promise<void> => {
      if (of.length === 0) return;
      const filter = { _id: anyOf(of.map(reportRowId)), projectId: anyOf(of.map(({ projectId }) => projectId)) };
      await reports.updateMany(filter, { $unset: { button: "" } });
    },
  });
};

export type ReportStore = ReturnType<typeof createReportStore>;
