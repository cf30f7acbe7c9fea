import type { NotificationId, ProjectId } from "@herald/contracts";
import { deadlineOptions, findSome, guardStore } from "@herald/mongo";
import type { Db, Filter } from "mongodb";
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
import type { Expanded, NotificationState } from "./notification-document.ts";

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

type Counted = Pick<NotificationState, "_id" | "projectId"> & {
  readonly expanded?: Pick<Expanded, "batches" | "devices"> | undefined;
};

/** Each has up to 1,000 devices with their tokens. */
const maxStarted = 50;

/** What counting reads of a row. */
const countedFields = {
  state: 1,
  tally: 1,
  failures: 1,
  generation: 1,
  childSize: 1,
  paused: 1,
  held: 1,
  dueAt: 1,
} as const;
type Row = Pick<DeliveryDocument, "_id" | keyof typeof countedFields>;

/** The devices that a row counts for its child until the child row exists. Counting both would count them twice. */
const inChildOf = ({ _id, generation, childSize = 0 }: Row, rows: Pick<ReadonlySet<string>, "has">): number =>
  rows.has(childId(_id, generation + 1)) ? 0 : childSize;

const sumsOf = (found: readonly Row[]): Sums => {
  const rows = new Map(found.map((row) => [row._id, row]));
  const all = [...rows.values()];
  const isFinal = all.every(({ state }) => state === "final");
  const roots = all.filter(({ generation }) => generation === rootGeneration).length;
  let sums: Sums = { tally: emptyTally, failures: {}, finalRoots: isFinal ? roots : undefined };
  for (const row of all) {
    const { tally, failures } = row;
    sums = {
      ...sums,
      tally: addTallies(sums.tally, { ...tally, devices: tally.devices + inChildOf(row, rows) }),
      failures: failures ? addFailures(sums.failures, failures) : sums.failures,
    };
  }
  return sums;
};

/** `rows`: at least those that are not final. */
const openOf = (
  rows: readonly Row[],
  finalRoots: number,
  { batches, devices }: Pick<Expanded, "batches" | "devices">,
  later: Date,
) => {
  const ids = new Set(rows.map(({ _id }) => _id));
  const isLater = ({ state, paused, held, dueAt }: Row) =>
    state === "waiting" && !paused && !held && dueAt && dueAt > later;
  const devicesOf = (some: readonly Row[]) =>
    some.reduce((sum, row) => sum + (row.state === "settled" ? inChildOf(row, ids) : row.tally.devices), 0);
  const open = rows.filter(({ state }) => state !== "final");
  const missing = batches - finalRoots - open.filter(({ generation }) => generation === rootGeneration).length;
  return {
    devices: devicesOf(open.filter((row) => !isLater(row))) + (missing > 0 ? (missing * devices) / batches : 0),
    paused: devicesOf(open.filter(({ paused }) => paused)),
  };
};

/** Aggregates the ledger rows of a notification. */
export const createLedger = (db: Db) => {
  const deliveries = deliveryCollection(db);
  const hint = deliveryHints.finish;
  const openRows: Filter<DeliveryDocument> = { state: { $in: ["started", "waiting", "settled"] } };
  type Of = Pick<DeliveryDocument, "projectId" | "notificationId">;

  const read = (of: Of): Promise<Row[]> =>
    deliveries
      .find(of, { hint: deliveryHints.devices, projection: countedFields, batchSize, ...deadlineOptions() })
      .toArray();

  const countFinalRoots = (of: Of): Promise<number> =>
    deliveries.countDocuments({ ...of, state: "final", generation: rootGeneration }, { hint });

  return guardStore({
    /** {@link Sums.finalRoots}, without reading all rows. */
    finalRoots: async (projectId: ProjectId, notificationId: NotificationId): Promise<number | undefined> => {
      const of = { projectId, notificationId };
      if (await deliveries.findOne({ ...of, ...openRows }, { hint, projection: { _id: 1 } })) return undefined;
      return countFinalRoots(of);
    },

    /** The sums over a notification's rows. */
    sums: async (projectId: ProjectId, notificationId: NotificationId): Promise<Sums> =>
      sumsOf(await read({ projectId, notificationId })),

    /**
     * How far the batches of a notification are. `open`: how many of their devices have no final state, of which `paused` wait for their
     * provider, without those that wait otherwise until after `later`; a batch without a row has as many as the others. `counts`: only if
     * `counted`, because that reads all rows.
     */
    results: async (
      { projectId, _id: notificationId, expanded = { batches: 0, devices: 0 } }: Counted,
      { counted, later }: { readonly counted: boolean; readonly later: Date },
    ) => {
      const of = { projectId, notificationId };
      if (counted) {
        const rows = await read(of);
        const final = rows.filter(({ state, generation }) => state === "final" && generation === rootGeneration);
        return { open: openOf(rows, final.length, expanded, later), counts: sumsOf(rows) };
      }
      const options = { hint, projection: countedFields, batchSize, ...deadlineOptions() };
      const [rows, final] = await Promise.all([
        deliveries.find({ ...of, ...openRows }, options).toArray(),
        countFinalRoots(of),
      ]);
      return { open: openOf(rows, final, expanded, later) };
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
