import type { DeliverBatchV1, NotificationId, OutboxEvent, ProjectId, Provider, Tag } from "@herald/contracts";
import {
  ensureIndexes,
  findSome,
  guardStore,
  having,
  insertBatched,
  projectAfter,
  removeFirst,
  updateBatched,
} from "@herald/mongo";
import { Binary, type Db } from "mongodb";
import { childId, rootGeneration } from "../domain/batch.ts";
import { emptyTally } from "../domain/notification-counts.ts";
import type { RuleResults } from "../domain/rule-results.ts";
import type { Sendable, Settlement, Waiting } from "../domain/settle-row.ts";
import {
  type BatchFacts,
  type Claim,
  claimedBy,
  deadLetterClaim,
  deliveryCollection,
  deliveryHints,
  deliveryIndexes,
  factsOf,
  fresh,
  newRow,
  packed,
  packNames,
  type Run,
  ruleResultsOf,
  runOf,
  servedBy,
  toStoredResults,
} from "./delivery-document.ts";
import { acceptedEventsOf, allAccepted, deliveryEvents } from "./events.ts";

/** Rows that the sweep reads at a time. */
const maxDue = 500;
/** A settled row gets its child at once. If it has none after this time, a crash prevented that. */
const childGraceMs = 5_000;

const factFields = {
  projectId: 1,
  notificationId: 1,
  platform: 1,
  provider: 1,
  lane: 1,
  generation: 1,
  tags: 1,
  expiresAt: 1,
  skip: 1,
} as const;

/** The update that starts a row for a message, whether the row waited or another message had started it. */
const startFor = (claim: Claim, now: Date) => ({
  $set: { state: "started" as const, claim, startedAt: now },
  $inc: { starts: 1 },
  $unset: { dueAt: "" as const, notBefore: "" as const, paused: "" as const, held: "" as const },
});

/** The ledger: one row for each batch, and a child row whenever some of its devices must wait. */
export const createDeliveryStore = (db: Db) => {
  const deliveries = deliveryCollection(db);
  const insertOne = insertBatched(deliveries);
  const updateOne = updateBatched(deliveries);

  /** Restarts a row for the redelivery of its own message. Earlier pushes are not known, so every device may get the push twice. */
  const restartRow = (projectId: ProjectId, id: string, claim: Claim, now: Date) =>
    deliveries.findOneAndUpdate(
      { _id: id, projectId, ...claimedBy(claim) },
      { $inc: { starts: 1 }, $set: { startedAt: now } },
      { returnDocument: "after" },
    );

  const restart = async (projectId: ProjectId, id: string, claim: Claim, now: Date): Promise<Run | undefined> => {
    const row = await restartRow(projectId, id, claim, now);
    if (!row) return undefined;
    const run = runOf(row, now);
    return { ...run, devices: run.devices.map((device) => ({ ...device, repeat: true })) };
  };

  return guardStore({
    ensureIndexes: () => ensureIndexes(deliveries, deliveryIndexes),

    /**
     * Starts a batch. Undefined when it is final, waits, or another message has started it. `tags`: of its notification. `ruleResults`
     * count if the row is new: a redelivery has those of then.
     */
    start: async (
      batch: DeliverBatchV1,
      claim: Claim,
      now: Date,
      {
        tags,
        ruleResults,
      }: { readonly tags?: readonly Tag[] | undefined; readonly ruleResults?: RuleResults | undefined } = {},
    ): Promise<Run | undefined> => {
      const row = newRow(batch, { claim, now, tags, ruleResults });
      const run = { ...factsOf(row), startedAt: now, publishedBeforeAck: true as const };
      if (await insertOne(row))
        return { ...run, starts: 1, devices: fresh(batch, false), ...(ruleResults && { ruleResults }) };
      const again = await restartRow(batch.projectId, batch.batchId, claim, now);
      return again ? { ...run, starts: again.starts, devices: fresh(batch, true), ...ruleResultsOf(again) } : undefined;
    },

    /** Stores the results of the rules for the devices of a started row. False when another process has started it since. */
    storeRuleResults: async ({ _id, projectId, starts }: Run, ruleResults: RuleResults): Promise<boolean> => {
      const { matchedCount } = await deliveries.updateOne(
        { _id, projectId, state: "started", starts },
        { $set: { decided: toStoredResults(ruleResults) } },
      );
      return matchedCount === 1;
    },

    /** Restarts a row that contains its devices. Undefined when another message has started it. */
    restart,

    /** A row without its devices, to decide whether it can start. */
    read: (projectId: ProjectId, id: string) =>
      deliveries.findOne(
        { _id: id, projectId },
        { projection: { ...factFields, state: 1, paused: 1, dueAt: 1, "tally.devices": 1 } },
      ),

    /** The devices of a row that waits or is started (its process may have died). Empty for any other row. */
    waiting: async (projectId: ProjectId, id: string): Promise<readonly Sendable[]> => {
      const row = await deliveries.findOne(
        { _id: id, projectId, state: { $in: ["waiting", "started"] } },
        { projection: { devices: 1 } },
      );
      return row?.devices ?? [];
    },

    /** Claims and starts a waiting row that is due. Undefined when it does not wait, or another message has started it. */
    claimDue: async (projectId: ProjectId, id: string, claim: Claim, now: Date): Promise<Run | undefined> => {
      const row = await deliveries.findOneAndUpdate(
        { _id: id, projectId, state: "waiting", notBefore: { $lte: now } },
        startFor(claim, now),
        { returnDocument: "after" },
      );
      return row ? runOf(row, now) : restart(projectId, id, claim, now);
    },

    /**
     * Claims a row for the dead-letter handler, so that it can be settled. Undefined when the row is settled, or when it was started for
     * another message than `claim`. Given `batch`, creates a missing row, with `tags`.
     */
    claim: async (
      { projectId, id }: { readonly projectId: ProjectId; readonly id: string },
      claim: Claim | undefined,
      now: Date,
      batch?: DeliverBatchV1,
      tags?: readonly Tag[],
    ): Promise<Run | undefined> => {
      const started = claim ? { $or: [claimedBy(claim), claimedBy(deadLetterClaim)] } : { state: "started" as const };
      if (batch) {
        const row = newRow(batch, { claim: deadLetterClaim, now, tags });
        if (await insertOne(row)) return { ...runOf(row, now), devices: fresh(batch, false) };
      }
      // Another message than the dead batch wakes a waiting root row. Only a dead wake-up may claim a waiting row.
      const row = await deliveries.findOneAndUpdate(
        { _id: id, projectId, ...(batch ? started : { $or: [started, { state: "waiting" as const }] }) },
        startFor(deadLetterClaim, now),
        { returnDocument: "before" },
      );
      if (!row) return undefined;
      const devices = batch ? fresh(batch, true) : (row.devices ?? []);
      return {
        ...runOf(row, now),
        starts: row.starts + 1,
        devices: devices.map((device) => ({ ...device, repeat: device.repeat || row.state === "started" })),
      };
    },

    /**
     * Writes the outcomes, the events and the waiting devices in one update. Repeatable. Undefined when another process has started
     * the row since: then the outcomes of that process count.
     */
    settle: async (run: Run, settlement: Settlement, now: Date): Promise<OutboxEvent[] | undefined> => {
      const { results, resultOf, tally, failures, waiting } = settlement;
      const providerIds = packNames(Array.from(run.devices, (_, index) => settlement.providerIds[index]));
      const outbox = deliveryEvents(run, run.devices, settlement, now);
      const updated = await updateOne(
        { _id: run._id, projectId: run.projectId },
        { state: "started", starts: run.starts },
        {
          $set: {
            state: waiting ? "settled" : "final",
            results: [...results],
            resultOf: new Binary(resultOf),
            tally,
            failures,
            settledAt: now,
            ...(providerIds === undefined ? {} : { providerIds }),
            ...(outbox.length > 0 && !canRebuildEvents(run, settlement) ? { outbox } : {}),
            // If a crash prevents the child's row, the sweep finds this row by `dueAt`.
            ...(waiting
              ? { child: waiting, childSize: waiting.devices.length, dueAt: new Date(now.getTime() + childGraceMs) }
              : {}),
          },
          $unset: { claim: "", devices: "" },
        },
      );
      if (updated === "updated") return outbox;
      // This update or an earlier try may have succeeded although its response was lost.
      const { _id, projectId, starts } = run;
      const written = { _id, projectId, starts, state: { $in: ["settled" as const, "final" as const] } };
      return (await deliveries.countDocuments(written, { limit: 1 })) === 1 ? outbox : undefined;
    },

    /** Rebuilds the events of a final root row whose devices were all accepted. Empty for any other row. */
    rebuildEvents: async (projectId: ProjectId, id: string): Promise<OutboxEvent[]> => {
      const row = await deliveries.findOne({ _id: id, projectId, state: "final", generation: rootGeneration });
      return row ? acceptedEventsOf(row) : [];
    },

    /** Stores the waiting devices of a row as its child row, and makes the row final. Undefined when no device waits. */
    storeChild: async (
      parent: BatchFacts,
    ): Promise<(BatchFacts & Pick<Waiting, "dueAt" | "paused" | "held">) | undefined> => {
      const { _id, projectId } = parent;
      const settled = await deliveries.findOne(
        { _id, projectId, state: "settled" },
        { projection: { child: 1, settledAt: 1 } },
      );
      if (!settled?.child) return undefined;
      const { devices, dueAt, notBefore, paused, held } = settled.child;
      const generation = parent.generation + 1;
      const facts = { ...factsOf(parent), _id: childId(_id, generation), generation };
      // Does nothing if an earlier try has stored it.
      await insertOne({
        ...facts,
        state: "waiting",
        starts: 0,
        storedAt: settled.settledAt ?? notBefore,
        ...packed(devices),
        tally: { ...emptyTally, devices: devices.length },
        devices: [...devices],
        dueAt,
        notBefore,
        ...(paused && { paused }),
        ...(held && { held }),
      });
      await deliveries.updateOne(
        { _id, projectId, state: "settled" },
        { $set: { state: "final" }, $unset: { child: "", childSize: "", dueAt: "" } },
      );
      return { ...facts, dueAt, paused, ...(held && { held }) };
    },

    /** Postpones a waiting row. Does nothing if `known` is given and no longer equals the row's `dueAt`. */
    postpone: async (projectId: ProjectId, id: string, dueAt: Date, known?: Date) => {
      const unchanged = known ? { dueAt: known } : {};
      await deliveries.updateOne({ _id: id, projectId, state: "waiting", ...unchanged }, { $set: { dueAt } });
    },

    /** Overdue rows: no message has started them, or a crash prevented their child row. */
    overdue: (before: Date) => {
      const options = { sort: { dueAt: 1 }, limit: maxDue, projection: { ...factFields, state: 1, dueAt: 1 } } as const;
      const filter = { dueAt: { $exists: true, $lte: before } };
      return findSome(deliveries, filter, { hint: deliveryHints.due, ...options });
    },

    /** Makes all waiting rows of a provider due after its settings changed. A device with its own Retry-After keeps waiting. */
    resume: async (projectId: ProjectId, provider: Provider, now: Date): Promise<number> => {
      let resumed = 0;
      for (const served of servedBy(provider)) {
        const { modifiedCount } = await deliveries.updateMany(
          { projectId, ...served, dueAt: { $exists: true }, state: "waiting" },
          // `notBefore` is 0 so that a process whose clock is behind can start the row, too.
          {
            $set: { dueAt: now, notBefore: new Date(0) },
            $unset: { paused: "", "devices.$[].retryAt": "" },
          },
          { hint: deliveryHints.resume },
        );
        resumed += modifiedCount;
      }
      return resumed;
    },

    /** Makes the held rows of a project or notification due. */
    resumeHeld: async (of: { readonly projectId: ProjectId; readonly notificationId?: NotificationId }, now: Date) => {
      await deliveries.updateMany(
        { ...of, held: { $exists: true }, state: "waiting" },
        // `notBefore` is 0 so that a process whose clock is behind can start the row, too.
        { $set: { dueAt: now, notBefore: new Date(0) }, $unset: { held: "" } },
        { hint: deliveryHints.held },
      );
    },

    /** A project's first notification with held rows whose id is greater than `after`. */
    heldAfter: async (projectId: ProjectId, after: string): Promise<NotificationId | undefined> => {
      const found = await deliveries.findOne(
        { projectId, notificationId: { $gt: after as NotificationId }, held: { $exists: true } },
        { hint: deliveryHints.held, sort: { projectId: 1, notificationId: 1 }, projection: { notificationId: 1 } },
      );
      return found?.notificationId;
    },

    /** The first project with held rows whose id is greater than `projectId`. */
    heldProjectAfter: projectAfter(deliveries, { hint: deliveryHints.held, filter: having("held") }),

    /** Makes all waiting rows of a cancelled notification due. */
    makeDue: async (projectId: ProjectId, notificationId: NotificationId, now: Date) => {
      await deliveries.updateMany(
        { projectId, notificationId, state: "waiting" },
        { $set: { dueAt: now, notBefore: now }, $unset: { held: "" } },
        { hint: deliveryHints.finish },
      );
    },

    /** Removes up to one batch of rows of notifications of any projects. Resolves to their number; less than a batch: none is left. */
    removeBatch: async (of: readonly { readonly _id: NotificationId; readonly projectId: ProjectId }[]) => {
      const filter = {
        projectId: { $in: [...new Set(of.map(({ projectId }) => projectId))] },
        notificationId: { $in: of.map(({ _id }) => _id) },
      };
      const sort = { notificationId: 1, firstDeviceId: 1 } as const;
      return (await removeFirst(deliveries, filter, { hint: deliveryHints.devices, sort })).length;
    },
  });
};

/** If true, the row does not store the run's events: the handler that settles the row publishes them before it acks the message. */
export const canRebuildEvents = (run: Run, settlement: Settlement): boolean =>
  run.publishedBeforeAck === true && allAccepted(settlement);

export type DeliveryStore = ReturnType<typeof createDeliveryStore>;
