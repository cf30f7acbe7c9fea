import { type NotificationId, type PlaceInChunk, type ProjectId, pagesOfExpansion } from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import { beginsWith, ensureIndexes, guardStore, type IndexSpec, insertBatched } from "@herald/mongo";
import type { Db } from "mongodb";
import type { Border } from "../domain/partition-batches.ts";

/** How a page of a notification was partitioned, so that a repeat partitions it in the same way. */
export type ExpansionDocument = {
  /** `<notification>/<page>`. */
  readonly _id: string;
  readonly projectId: ProjectId;
  readonly notificationId: NotificationId;
  /** Both bounds are inclusive. */
  readonly fromBucket: number;
  readonly toBucket: number;
  /** The beginning of each batch; batch n has the id `<notification>/<page>/<n>`. */
  readonly batches: readonly Border[];
  readonly devices: number;
  /** Positions of the targets that matched one of the devices. */
  readonly matched: readonly number[];
  /** Of recipients: where the page ends in its chunk. */
  readonly to?: PlaceInChunk;
  readonly at: Date;
};

/** An expansion takes seconds; no message lives longer. */
const keepSeconds = 30 * 86_400;

const indexes = [
  { fields: { at: 1 }, purpose: "expire", expireAfterSeconds: keepSeconds },
] as const satisfies readonly IndexSpec[];

const idOf = (notificationId: NotificationId, page: number): string => `${notificationId}/${page}`;

export const createExpandedPageStore = (db: Db) => {
  const expansions = db.collection<ExpansionDocument>("expansions");
  const insertOne = insertBatched(expansions);

  return guardStore({
    ensureIndexes: () => ensureIndexes(expansions, indexes),

    /** Resolves to the partition that was stored earlier, if there is one. */
    insert: async (page: number, partition: Omit<ExpansionDocument, "_id">): Promise<ExpansionDocument | undefined> => {
      const _id = idOf(partition.notificationId, page);
      if (await insertOne({ _id, ...partition })) return undefined;
      const stored = await expansions.findOne({ _id, projectId: partition.projectId });
      // The id belongs to another project, so a retry would fail too.
      if (stored === null)
        throw new HeraldError(
          "notification-not-found",
          `the notification ${partition.notificationId} is another project's`,
        );
      return stored;
    },

    /** The sums over all pages, or those of an expansion up to its last page, and the largest number of batches in one page. */
    totals: async (
      projectId: ProjectId,
      notificationId: NotificationId,
      of?: { readonly n: number; readonly page: number },
    ) => {
      const pages = of && Array.from({ length: of.page - of.n * pagesOfExpansion + 1 }, (_, at) => of.page - at);
      const _id = pages ? { $in: pages.map((page) => idOf(notificationId, page)) } : beginsWith(`${notificationId}/`);
      const rows = await expansions
        .find(
          { _id, projectId },
          { hint: "_id_", projection: { batches: 1, devices: 1, matched: 1 }, batchSize: 10_000 },
        )
        .toArray();
      return {
        batches: rows.reduce((sum, { batches }) => sum + batches.length, 0),
        pageBatches: Math.max(0, ...rows.map(({ batches }) => batches.length)),
        devices: rows.reduce((sum, { devices }) => sum + devices, 0),
        matched: new Set(rows.flatMap(({ matched }) => matched)),
      };
    },
  });
};
