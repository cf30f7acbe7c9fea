import type { NotificationId, ProjectId } from "@herald/contracts";
import { anyOf, deadlineOptions, guardStore, inOneCommand } from "@herald/mongo";
import type { Db } from "mongodb";
import { childId, rootGeneration } from "../domain/batch-ids.ts";
import { addFailures, addTallies, type Failures, noDevices, type Tally } from "../domain/counts.ts";
import type { LedgerState } from "../domain/notification-status.ts";
import { type DeliveryDocument, deliveryCollection, deliveryHints } from "./delivery-document.ts";

export type Sums = { readonly tally: Tally; readonly failures: Failures; readonly rows: number };

/**
 * The rows of five million devices in one answer. In several, a row that is written between two of them (its events are out) can
 * be in both, and would count twice.
 */
const batchSize = 10_000;

type Key = { readonly projectId: ProjectId; readonly notificationId: NotificationId };
const rowFields = { projectId: 1, notificationId: 1, state: 1, tally: 1, failures: 1 } as const;
type Row = Pick<DeliveryDocument, "_id" | "projectId" | "notificationId" | "state" | "tally" | "failures">;

/** What the ledger's rows of a notification say together. */
export const createLedgerReads = (db: Db) => {
  const deliveries = deliveryCollection(db);

  /** The rows of notifications that have few, together with those of others. */
  const findRows = inOneCommand<Key, readonly Row[]>(async (keys) => {
    const found = await deliveries
      .find(
        {
          projectId: anyOf(keys.map(({ projectId }) => projectId)),
          notificationId: anyOf(keys.map(({ notificationId }) => notificationId)),
        },
        { hint: deliveryHints.finish, projection: rowFields, batchSize },
      )
      .toArray();
    return keys.map(({ projectId, notificationId }) =>
      found.filter((row) => row.notificationId === notificationId && row.projectId === projectId),
    );
  });

  return guardStore({
    /** What is known of a notification whose expansion came to one batch: its row, where that is final and went on in no other. */
    singleRow: async (
      projectId: ProjectId,
      notificationId: NotificationId,
    ): Promise<Pick<Sums, "tally" | "failures"> | "open" | "several"> => {
      const [row, another] = await findRows({ projectId, notificationId });
      if (row === undefined) return "open";
      if (another !== undefined) return "several";
      const { state, tally, failures = {} } = row;
      return state === "final" ? { tally, failures } : "open";
    },

    /** What the finish check looks at. */
    state: async (
      projectId: ProjectId,
      notificationId: NotificationId,
    ): Promise<Omit<LedgerState, "expandedBatches">> => {
      const hint = deliveryHints.finish;
      const open = await deliveries.findOne(
        { projectId, notificationId, state: { $in: ["started", "waiting", "settled"] } },
        { hint, projection: { _id: 1 } },
      );
      if (open) return { open: 1, finalRoots: 0 };
      const finalRoots = await deliveries.countDocuments(
        { projectId, notificationId, state: "final", generation: rootGeneration },
        { hint },
      );
      return { open: 0, finalRoots };
    },

    /** The sums over a notification's rows. */
    sums: async (projectId: ProjectId, notificationId: NotificationId): Promise<Sums> => {
      const found = await deliveries
        .find(
          { projectId, notificationId },
          {
            hint: deliveryHints.devices,
            projection: { tally: 1, failures: 1, generation: 1, childSize: 1 },
            batchSize,
            ...deadlineOptions(),
          },
        )
        .toArray();
      const rows = new Map(found.map((row) => [row._id, row]));
      let sums: Sums = { tally: noDevices, failures: {}, rows: rows.size };
      for (const { _id, tally, failures, childSize = 0, generation } of rows.values()) {
        // Between the child's row and the parent's update it would be counted twice.
        const inParent = childSize > 0 && !rows.has(childId(_id, generation + 1)) ? childSize : 0;
        sums = {
          ...sums,
          tally: addTallies(sums.tally, { ...tally, devices: tally.devices + inParent }),
          failures: failures ? addFailures(sums.failures, failures) : sums.failures,
        };
      }
      return sums;
    },
  });
};

export type LedgerReads = ReturnType<typeof createLedgerReads>;
