import type { NotificationId, ProjectId } from "@herald/contracts";
import { deadlineOptions, findSome, guardStore } from "@herald/mongo";
import type { Db } from "mongodb";
import { childId, rootGeneration } from "../domain/batch.ts";
import { addFailures, addTallies, emptyTally, type Failures, type Tally } from "../domain/notification-counts.ts";
import type { Sendable } from "../domain/settle-row.ts";
import {
  claimedBy,
  type DeliveryDocument,
  deadLetterClaim,
  deliveryCollection,
  deliveryHints,
} from "./delivery-document.ts";

export type Sums = {
  readonly tally: Tally;
  readonly failures: Failures;
  /** How many batches are final, with their children. Undefined while a row is being sent, waits, or has no child row yet. */
  readonly finalRoots: number | undefined;
};

/**
 * Fits the rows of five million devices in one response. With several responses, a row that is written between two of them (after its
 * events are published) can be in both, and would count twice.
 */
const batchSize = 10_000;

/** Each has up to 1,000 devices with their tokens. */
const maxStarted = 50;

/** Aggregates the ledger rows of a notification. */
export const createLedger = (db: Db) => {
  const deliveries = deliveryCollection(db);

  return guardStore({
    /** {@link Sums.finalRoots}, without reading all rows. */
    finalRoots: async (projectId: ProjectId, notificationId: NotificationId): Promise<number | undefined> => {
      const hint = deliveryHints.finish;
      const of = { projectId, notificationId };
      const states = ["started", "waiting", "settled"] as const;
      const open = await deliveries.findOne({ ...of, state: { $in: [...states] } }, { hint, projection: { _id: 1 } });
      if (open) return undefined;
      return deliveries.countDocuments({ ...of, state: "final", generation: rootGeneration }, { hint });
    },

    /** The sums over a notification's rows. */
    sums: async (projectId: ProjectId, notificationId: NotificationId): Promise<Sums> => {
      const projection = { state: 1, tally: 1, failures: 1, generation: 1, childSize: 1 } as const;
      const options = { hint: deliveryHints.devices, projection, batchSize, ...deadlineOptions() };
      const found = await deliveries.find({ projectId, notificationId }, options).toArray();
      const rows = new Map(found.map((row) => [row._id, row]));
      const all = [...rows.values()];
      const isFinal = all.every(({ state }) => state === "final");
      const roots = all.filter(({ generation }) => generation === rootGeneration).length;
      let sums: Sums = { tally: emptyTally, failures: {}, finalRoots: isFinal ? roots : undefined };
      for (const { _id, tally, failures, childSize = 0, generation } of all) {
        // The parent counts its child's devices until the child row exists. Counting both would count them twice.
        const inParent = childSize > 0 && !rows.has(childId(_id, generation + 1)) ? childSize : 0;
        sums = {
          ...sums,
          tally: addTallies(sums.tally, { ...tally, devices: tally.devices + inParent }),
          failures: failures ? addFailures(sums.failures, failures) : sums.failures,
        };
      }
      return sums;
    },

    /** How many devices of a notification wait for their provider, and how many otherwise until after `later`. */
    waiting: async (projectId: ProjectId, notificationId: NotificationId, later: Date) => {
      const projection = { paused: 1, held: 1, dueAt: 1, tally: 1 } as const;
      const options = { hint: deliveryHints.finish, projection, batchSize, ...deadlineOptions() };
      const rows = await deliveries.find({ projectId, notificationId, state: "waiting" }, options).toArray();
      const devicesOf = (some: typeof rows) => some.reduce((sum, { tally }) => sum + tally.devices, 0);
      const isLater = ({ paused, held, dueAt }: (typeof rows)[number]) => !paused && !held && dueAt && dueAt > later;
      return { paused: devicesOf(rows.filter(({ paused }) => paused)), later: devicesOf(rows.filter(isLater)) };
    },

    /** Up to {@link maxStarted} rows of a notification that were started before `before` and have no outcomes. */
    started: (projectId: ProjectId, notificationId: NotificationId, before: Date): Promise<DeliveryDocument[]> =>
      findSome(
        deliveries,
        { projectId, notificationId, state: "started", startedAt: { $lt: before } },
        { hint: deliveryHints.finish, limit: maxStarted },
      ),

    /**
     * Returns a started row to waiting, due now, so that its devices are sent to again. False when another process has settled or started
     * the row since it was read. A process that is still sending the row can no longer settle it.
     */
    release: async (row: DeliveryDocument, devices: readonly Sendable[], now: Date): Promise<boolean> => {
      const { _id, projectId, starts, claim = deadLetterClaim } = row;
      const { modifiedCount } = await deliveries.updateOne(
        { _id, projectId, starts, ...claimedBy(claim) },
        {
          $set: { state: "waiting", devices: [...devices], dueAt: now, notBefore: new Date(0) },
          $unset: { claim: "" },
        },
      );
      return modifiedCount === 1;
    },

    /** How many batches of a notification have a row. */
    countRoots: (projectId: ProjectId, notificationId: NotificationId): Promise<number> =>
      deliveries.countDocuments(
        { projectId, notificationId, generation: rootGeneration },
        { hint: deliveryHints.finish },
      ),
  });
};

export type Ledger = ReturnType<typeof createLedger>;
