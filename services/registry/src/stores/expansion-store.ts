import type { NotificationId, ProjectId } from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import { ensureIndexes, guardStore, type IndexSpec, insertBatched } from "@herald/mongo";
import type { Db } from "mongodb";
import type { Border } from "../domain/partition-batches.ts";

/** How one page of a notification was partitioned, for whoever has to partition it again. */
export type ExpansionDocument = {
  /** `<notification>/<page>`. */
  readonly _id: string;
  readonly projectId: ProjectId;
  readonly notificationId: NotificationId;
  /** The page's buckets, both included. */
  readonly fromBucket: number;
  readonly toBucket: number;
  /** Batch n is `<notification>/<page>/<n>`; what is stored of it is where it begins. */
  readonly batches: readonly Border[];
  /** How many devices were partitioned. */
  readonly devices: number;
  /** The targets that named one of them, as positions in the notification's list. */
  readonly matched: readonly number[];
  readonly at: Date;
};

/** An expansion lasts seconds; a page that was held up is partitioned again within the life of what waits for it. */
const keepSeconds = 30 * 86_400;

const indexes = [
  { fields: { at: 1 }, purpose: "expire", expireAfterSeconds: keepSeconds },
] as const satisfies readonly IndexSpec[];

export type ExpansionStore = ReturnType<typeof createExpansionStore>;

const idOf = (notificationId: NotificationId, page: number): string => `${notificationId}/${page}`;

export const createExpansionStore = (db: Db) => {
  const expansions = db.collection<ExpansionDocument>("expansions");
  const insertOne = insertBatched(expansions);

  return guardStore({
    ensureIndexes: () => ensureIndexes(expansions, indexes),

    /** Stores a page's partition, or gives the one that is stored already: that one counts. */
    keep: async (page: number, partition: Omit<ExpansionDocument, "_id">): Promise<ExpansionDocument | undefined> => {
      const _id = idOf(partition.notificationId, page);
      if (await insertOne({ _id, ...partition })) return undefined;
      const stored = await expansions.findOne({ _id, projectId: partition.projectId });
      // Tried again it would fail again, for as long as the row of the other project lives.
      if (stored === null)
        throw new HeraldError(
          "notification-not-found",
          `the notification ${partition.notificationId} is another project's`,
        );
      return stored;
    },

    /** What all pages of a notification come to. */
    totals: async (
      projectId: ProjectId,
      notificationId: NotificationId,
    ): Promise<{ batches: number; devices: number; matched: ReadonlySet<number> }> => {
      const rows = await expansions
        .find(
          // `0` is the character after `/`: all pages, and nothing else.
          { _id: { $gte: `${notificationId}/`, $lt: `${notificationId}0` }, projectId },
          { hint: "_id_", projection: { batches: 1, devices: 1, matched: 1 }, batchSize: 10_000 },
        )
        .toArray();
      return {
        batches: rows.reduce((sum, { batches }) => sum + batches.length, 0),
        devices: rows.reduce((sum, { devices }) => sum + devices, 0),
        matched: new Set(rows.flatMap(({ matched }) => matched)),
      };
    },
  });
};
