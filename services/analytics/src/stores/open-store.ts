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
import { type Open, openId, type ReportedOpen } from "../domain/open.ts";

type OpenDocument = ReportedOpen & {
  /** `<notification>/<device>`, so that an open counts once. */
  readonly _id: string;
};

type Read = (of: {
  readonly projectId: ProjectId;
  readonly notificationId?: NotificationId | undefined;
  /** The id of an open; absent to begin. */
  readonly after?: string | undefined;
  readonly limit: number;
}) => Promise<OpenDocument[]>;

const indexes = {
  byTime: { fields: { projectId: 1, openedAt: 1 }, purpose: "statistics" },
} as const satisfies Record<string, IndexSpec>;

/** Opens of a project by time and id, or of one notification by id. Fewer than `limit`: there are no more. */
const exportOpens = (opens: Collection<OpenDocument>): Read => {
  const read = (filter: Filter<OpenDocument>, hint: string, sort: "_id" | "openedAt", limit: number) =>
    opens
      .find(filter, { hint, limit, batchSize: limit + 1, ...deadlineOptions() })
      .sort({ [sort]: 1 })
      .toArray();

  const byTime = indexName(indexes.byTime);

  const ofNotification: Read = ({ projectId, notificationId, after, limit }) => {
    const _id = { ...beginsWith(`${notificationId}/`), ...(after !== undefined && { $gt: after }) };
    return read({ projectId, _id }, "_id_", "_id", limit);
  };

  /** The index has no ids, so opens of the same moment need a query of their own that sorts by id. */
  const ofMoment = (projectId: ProjectId, openedAt: Date, after: string, limit: number) =>
    read({ projectId, openedAt, _id: { $gt: after } }, byTime, "_id", limit);

  const ofProject: Read = async ({ projectId, after = "", limit }) => {
    // If retention has removed the open `after`, the export continues with the oldest open that is left.
    const options = { hint: "_id_", projection: { openedAt: 1 } };
    let at = after === "" ? undefined : (await opens.findOne({ _id: after, projectId }, options))?.openedAt;
    let found = at === undefined ? [] : await ofMoment(projectId, at, after, limit);
    while (found.length < limit) {
      const later = { projectId, ...(at && { openedAt: { $gt: at } }) };
      const page = await read(later, byTime, "openedAt", limit - found.length);
      const last = page.at(-1)?.openedAt;
      if (last === undefined) return found;
      const whole = page.filter(({ openedAt }) => openedAt < last).sort(byTimeAndId);
      // The last moment may have more opens than the page.
      found = [...found, ...whole, ...(await ofMoment(projectId, last, "", limit - found.length - whole.length))];
      at = last;
    }
    return found;
  };

  return (request) => (request.notificationId === undefined ? ofProject(request) : ofNotification(request));
};

const byTimeAndId = (one: OpenDocument, other: OpenDocument): number =>
  one.openedAt.getTime() - other.openedAt.getTime() || (one._id < other._id ? -1 : 1);

/** Every function throws `database-unavailable` while the database is unavailable. */
export const createOpenStore = (db: Db) => {
  const opens: Collection<OpenDocument> = db.collection("opens");
  return guardStore({
    ...projectRows(opens, indexes, indexes.byTime),

    /** Stores new opens. Resolves to the opens that these reports added, now or in an earlier attempt: a repeat finds the same ones. */
    record: async (batch: readonly ReportedOpen[]): Promise<readonly ReportedOpen[]> => {
      if (
        await insertMissing(
          opens,
          batch.map((open) => ({ ...open, _id: openId(open) })),
        )
      )
        return batch;
      const projectId = anyOf(batch.map((open) => open.projectId));
      const rows = await findByIds(opens, batch.map(openId), { projectId });
      const reports = new Set(batch.map(({ report }) => report));
      return rows.filter(({ report }) => reports.has(report));
    },

    /** How many devices opened a notification, up to `max`. */
    count: (projectId: ProjectId, notificationId: NotificationId, max: number): Promise<number> =>
      opens.countDocuments({ projectId, _id: beginsWith(`${notificationId}/`) }, { hint: "_id_", limit: max }),

    /** Removes a batch of opens older than `before`, starting with the next project after `after`. */
    removeOld: (before: Date, after: string | undefined): Promise<RemovedBatch> => {
      const filters = (projectId: string) => [{ projectId, openedAt: { $lt: before } }];
      return removeByProject(opens, { ...byIndex(indexes.byTime), filters }, after);
    },

    export: exportOpens(opens),

    find: (projectId: ProjectId, of: readonly Pick<Open, "notificationId" | "deviceId">[]): Promise<Open[]> =>
      findByIds(opens, of.map(openId), { projectId }),
  });
};

export type OpenStore = ReturnType<typeof createOpenStore>;
