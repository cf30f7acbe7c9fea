import type { NotificationId, ProjectId } from "@herald/contracts";
import {
  byIndex,
  ensureIndexes,
  guardStore,
  type IndexSpec,
  indexName,
  insertMissing,
  type RemovedBatch,
  removeByProject,
  removeFirst,
} from "@herald/mongo";
import type { Collection, Db } from "mongodb";
import { type Open, openId, type ReportedOpen } from "../domain/open.ts";
import { exportOpens } from "./export-opens.ts";
import type { OpenDocument } from "./open-document.ts";

const indexes = {
  byTime: { fields: { projectId: 1, openedAt: 1 }, purpose: "statistics" },
  unpublished: { fields: { published: 1, openedAt: 1 }, purpose: "sweep", partial: { published: false } },
} as const satisfies Record<string, IndexSpec>;

/** Every function throws `database-unavailable` when the database is. */
export const createOpenStore = (db: Db) => {
  const opens: Collection<OpenDocument> = db.collection("opens");
  return guardStore({
    ensureIndexes: () => ensureIndexes(opens, Object.values(indexes)),

    /** Stores opens that are not there yet. Resolves to those that these reports added, now or before a crash, and those without a published event. */
    record: async (batch: readonly ReportedOpen[]): Promise<{ added: ReportedOpen[]; toPublish: Open[] }> => {
      const documents = batch.map((open) => ({ ...open, _id: openId(open), published: false as const }));
      if (await insertMissing(opens, documents)) return { added: [...batch], toPublish: [...batch] };
      const projectIds = [...new Set(batch.map(({ projectId }) => projectId))];
      const ids = documents.map(({ _id }) => _id);
      // In one batch: a row that is marked between two batches could be in both and count twice.
      const rows = await opens
        .find({ projectId: { $in: projectIds }, _id: { $in: ids } }, { hint: "_id_", batchSize: ids.length + 1 })
        .toArray();
      const reports = new Set(batch.map(({ report }) => report));
      return {
        added: rows.filter(({ report }) => reports.has(report)),
        toPublish: rows.filter(({ published }) => published === false),
      };
    },

    markPublished: async (published: readonly Open[]): Promise<void> => {
      const projectIds = [...new Set(published.map(({ projectId }) => projectId))];
      await opens.updateMany(
        { projectId: { $in: projectIds }, _id: { $in: published.map(openId) } },
        { $unset: { published: "" } },
        { hint: "_id_" },
      );
    },

    /** Opens from before `before` whose event may not be published, oldest first. */
    findUnpublished: (before: Date, limit: number): Promise<Open[]> =>
      opens.find({ published: false, openedAt: { $lt: before } }, { ...byIndex(indexes.unpublished), limit }).toArray(),

    /** How many devices opened a notification, up to `max`. */
    count: (projectId: ProjectId, notificationId: NotificationId, max: number): Promise<number> =>
      opens.countDocuments(
        // `0` is the character after `/`.
        { projectId, _id: { $gte: `${notificationId}/`, $lt: `${notificationId}0` } },
        { hint: "_id_", limit: max },
      ),

    /** Removes a batch of opens from before `before`, starting with the project behind `after`. */
    removeOld: (before: Date, after: string | undefined): Promise<RemovedBatch> => {
      const filters = (projectId: string) => [{ projectId, openedAt: { $lt: before } }];
      return removeByProject(opens, { ...byIndex(indexes.byTime), filters }, after);
    },

    export: exportOpens(opens, indexName(indexes.byTime)),

    find: (projectId: ProjectId, of: readonly Pick<Open, "notificationId" | "deviceId">[]): Promise<Open[]> =>
      opens.find({ projectId, _id: { $in: of.map(openId) } }, { hint: "_id_", batchSize: of.length + 1 }).toArray(),

    /** Removes a page of a project's opens. False when none is left. */
    removePage: async (projectId: ProjectId): Promise<boolean> =>
      (await removeFirst(opens, { projectId }, byIndex(indexes.byTime))).length > 0,
  });
};

export type OpenStore = ReturnType<typeof createOpenStore>;
