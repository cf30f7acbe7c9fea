import {
  type DeliverBatchV1,
  type NotificationId,
  type OutboxEvent,
  type Platform,
  type ProjectId,
  type Provider,
  platformOf,
  providersOf,
  type Tag,
} from "@herald/contracts";
import { ensureIndexes, guardStore, insertBatched, isDuplicateKey, removeFirst, updateBatched } from "@herald/mongo";
import { Binary, type Db } from "mongodb";
import { childId, rootGeneration } from "../domain/batch-ids.ts";
import { noDevices, type Tally } from "../domain/counts.ts";
import type { Sendable, Settlement, Waiting } from "../domain/settle-batch.ts";
import {
  type BatchFacts,
  type Claim,
  claimedBy,
  type DeliveryDocument,
  deadLetterClaim,
  deliveryCollection,
  deliveryHints,
  deliveryIndexes,
  factsOf,
  fresh,
  newRow,
  ownersOf,
  packed,
  type Run,
} from "./delivery-document.ts";
import { deliveryEvents } from "./delivery-events.ts";
import { packedAt, packedCount } from "./packed-ids.ts";
import { packNames } from "./packed-names.ts";

/** What the sweep takes at a time. */
const maxDue = 500;
/** A settled row gets its child at once; past this time, a crash prevented it. */
const childGraceMs = 5_000;

const factFields = {
  projectId: 1,
  notificationId: 1,
  platform: 1,
  provider: 1,
  lane: 1,
  generation: 1,
  tags: 1,
} as const;
const runFields = { ...factFields, starts: 1, devices: 1 } as const;

/** Has a message start a row that waited, or that another one had started. */
const startFor = ({ at, sequence }: Claim, now: Date) => ({
  $set: { state: "started" as const, claim: at, claimSequence: sequence, startedAt: now },
  $inc: { starts: 1 },
  $unset: { dueAt: "" as const, notBefore: "" as const, paused: "" as const },
});

const servingOthers = (provider: Provider): Platform[] =>
  (Object.keys(providersOf) as Platform[]).filter(
    (platform) => platform !== platformOf[provider] && providersOf[platform].includes(provider),
  );

/** Filters for the rows that a provider serves: those of its own platform, and those of others that name it. */
const servedBy = (provider: Provider) => {
  const others = servingOthers(provider);
  const own = { platform: platformOf[provider], provider: { $exists: false } };
  return others.length === 0 ? [own] : [own, { platform: { $in: others }, provider }];
};

/** The ledger: one row for each batch, and one for each part of it that had to wait. */
export const createDeliveryStore = (db: Db) => {
  const deliveries = deliveryCollection(db);
  const insertOne = insertBatched(deliveries);
  const updateOne = updateBatched(deliveries);

  /** The message that started it comes again: how far it got is not known, so every device may get it twice. */
  const restartRow = (projectId: ProjectId, id: string, claim: Claim, now: Date) =>
    deliveries.findOneAndUpdate(
      { _id: id, projectId, ...claimedBy(claim) },
      { $inc: { starts: 1 }, $set: { startedAt: now } },
      { returnDocument: "after", projection: runFields },
    );

  const restart = async (projectId: ProjectId, id: string, claim: Claim, now: Date): Promise<Run | undefined> => {
    const row = await restartRow(projectId, id, claim, now);
    const devices = row?.devices?.map((device) => ({ ...device, repeat: true })) ?? [];
    return row ? { ...factsOf(row), startedAt: now, starts: row.starts, devices } : undefined;
  };

  return guardStore({
    ensureIndexes: () => ensureIndexes(deliveries, deliveryIndexes),

    /** Starts a batch that registry partitioned; undefined when it is final, waits, or is another message's to send. `tags`: of its notification. */
    start: async (batch: DeliverBatchV1, claim: Claim, now: Date, tags?: readonly Tag[]): Promise<Run | undefined> => {
      const row = newRow(batch, { claim, now, tags });
      const run = { ...factsOf(row), startedAt: now, publishedBeforeAck: true as const };
      if (await insertOne(row)) return { ...run, starts: 1, devices: fresh(batch, false) };
      const again = await restartRow(batch.projectId, batch.batchId, claim, now);
      return again ? { ...run, starts: again.starts, devices: fresh(batch, true) } : undefined;
    },

    /** Starts a row that carries its devices again, for the message that started it before; undefined when it is not that one's. */
    restart,

    /** A row without its devices, to decide whether it can start. */
    read: (projectId: ProjectId, id: string) =>
      deliveries.findOne(
        { _id: id, projectId },
        { projection: { ...factFields, state: 1, paused: 1, dueAt: 1, "tally.devices": 1 } },
      ),

    /** The devices of a row that waits, or was being sent when its process died; none of any other. */
    waiting: async (projectId: ProjectId, id: string): Promise<readonly Sendable[]> => {
      const row = await deliveries.findOne(
        { _id: id, projectId, state: { $in: ["waiting", "started"] } },
        { projection: { devices: 1 } },
      );
      return row?.devices ?? [];
    },

    /** Claims a waiting row that is due and starts it; undefined when it does not wait, or is another message's to send. */
    claimDue: async (projectId: ProjectId, id: string, claim: Claim, now: Date): Promise<Run | undefined> => {
      const row = await deliveries.findOneAndUpdate(
        { _id: id, projectId, state: "waiting", notBefore: { $lte: now } },
        startFor(claim, now),
        { returnDocument: "after", projection: runFields },
      );
      if (row) return { ...factsOf(row), startedAt: now, starts: row.starts, devices: row.devices ?? [] };
      return restart(projectId, id, claim, now);
    },

    /**
     * Claims a row for the dead-letter handler, in whatever state it is, so that it can be settled; undefined when that is
     * done already, or when another message than that of `claim` has started it. `batch` makes the row where there is none, with `tags`.
     */
    claim: async (
      key: {
        projectId: ProjectId;
        id: string;
        batch?: DeliverBatchV1;
        claim?: Claim;
        tags?: readonly Tag[] | undefined;
      },
      now: Date,
    ): Promise<Run | undefined> => {
      const { projectId, id, batch, claim, tags } = key;
      const started = claim ? { $or: [claimedBy(claim), claimedBy(deadLetterClaim)] } : { state: "started" as const };
      if (batch) {
        try {
          const row = newRow(batch, { claim: deadLetterClaim, now, tags });
          await deliveries.insertOne(row);
          return { ...factsOf(row), startedAt: now, starts: 1, devices: fresh(batch, false) };
        } catch (error) {
          if (!isDuplicateKey(error)) throw error;
        }
      }
      // A root that waits went on without its message, which is another's to wake; only its own wake-up is given up.
      const row = await deliveries.findOneAndUpdate(
        { _id: id, projectId, ...(batch ? started : { $or: [started, { state: "waiting" as const }] }) },
        startFor(deadLetterClaim, now),
        { returnDocument: "before", projection: { ...runFields, state: 1 } },
      );
      if (!row) return undefined;
      const devices = batch ? fresh(batch, true) : (row.devices ?? []);
      return {
        ...factsOf(row),
        startedAt: now,
        starts: row.starts + 1,
        devices: devices.map((device) => ({ ...device, repeat: device.repeat || row.state === "started" })),
      };
    },

    /**
     * Writes the outcomes, the events and what goes on in one update, once, however often it is called. Undefined when
     * somebody started the row after `run` did: then theirs are the ones that count.
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
            // The sweep over `dueAt` finds the child that a crash left behind.
            ...(waiting
              ? { child: waiting, childSize: waiting.devices.length, dueAt: new Date(now.getTime() + childGraceMs) }
              : {}),
          },
          $unset: { claim: "", claimSequence: "", devices: "" },
        },
      );
      if (updated === "updated") return outbox;
      // This one may have been written, or an earlier try whose answer was lost.
      const { _id, projectId, starts } = run;
      const written = { _id, projectId, starts, state: { $in: ["settled" as const, "final" as const] } };
      return (await deliveries.countDocuments(written, { limit: 1 })) === 1 ? outbox : undefined;
    },

    /** The events of a root row that is final, where they follow from the row; none otherwise. */
    rebuildEvents: async (projectId: ProjectId, id: string): Promise<OutboxEvent[]> => {
      const row = await deliveries.findOne({ _id: id, projectId, state: "final", generation: rootGeneration });
      return row ? acceptedEventsOf(row) : [];
    },

    /** Gives what goes on a row of its own; the parent is final then. Undefined when there is nothing that goes on. */
    storeChild: async (parent: BatchFacts): Promise<(BatchFacts & Pick<Waiting, "dueAt" | "paused">) | undefined> => {
      const { _id, projectId } = parent;
      const settled = await deliveries.findOne(
        { _id, projectId, state: "settled" },
        { projection: { child: 1, settledAt: 1 } },
      );
      if (!settled?.child) return undefined;
      const { devices, dueAt, notBefore, paused } = settled.child;
      const generation = parent.generation + 1;
      const facts = { ...factsOf(parent), _id: childId(_id, generation), generation };
      try {
        await deliveries.insertOne({
          ...facts,
          state: "waiting",
          starts: 0,
          storedAt: settled.settledAt ?? notBefore,
          ...packed(devices),
          tally: { ...noDevices, devices: devices.length },
          devices: [...devices],
          dueAt,
          notBefore,
          ...(paused ? { paused: true as const } : {}),
        });
      } catch (error) {
        if (!isDuplicateKey(error)) throw error;
      }
      await deliveries.updateOne(
        { _id, projectId, state: "settled" },
        { $set: { state: "final" }, $unset: { child: "", childSize: "", dueAt: "" } },
      );
      return { ...facts, dueAt, paused };
    },

    /** Looks at a row that waits later. `known` is when it was due: if somebody has changed that since, nothing happens. */
    postpone: async (projectId: ProjectId, id: string, dueAt: Date, known?: Date) => {
      const unchanged = known ? { dueAt: known } : {};
      await deliveries.updateOne({ _id: id, projectId, state: "waiting", ...unchanged }, { $set: { dueAt } });
    },

    /** Rows that ought to have been woken, or whose child was left behind. */
    overdue: (before: Date) =>
      deliveries
        .find(
          { dueAt: { $exists: true, $lte: before } },
          {
            hint: deliveryHints.due,
            projection: { ...factFields, state: 1, dueAt: 1 },
          },
        )
        .sort({ dueAt: 1 })
        .limit(maxDue)
        .toArray(),

    /** The provider has other settings: whatever waits is due. A device with a Retry-After of its own keeps waiting. */
    resume: async (projectId: ProjectId, provider: Provider, now: Date): Promise<number> => {
      let resumed = 0;
      for (const served of servedBy(provider)) {
        const { modifiedCount } = await deliveries.updateMany(
          { projectId, ...served, dueAt: { $exists: true }, state: "waiting" },
          // Whose clock is behind may wake it as well.
          { $set: { dueAt: now, notBefore: new Date(0) }, $unset: { paused: "" } },
          { hint: deliveryHints.resume },
        );
        resumed += modifiedCount;
      }
      return resumed;
    },

    /** The notification is cancelled: what waits has nothing to wait for. */
    makeDue: async (projectId: ProjectId, notificationId: NotificationId, now: Date) => {
      await deliveries.updateMany(
        { projectId, notificationId, state: "waiting" },
        { $set: { dueAt: now, notBefore: now } },
        { hint: deliveryHints.finish },
      );
    },

    /** Removes a batch of the rows of some notifications, of any projects. Gives how many; fewer than a batch: none is left. */
    removeBatch: async (of: readonly { readonly _id: NotificationId; readonly projectId: ProjectId }[]) => {
      const filter = {
        projectId: { $in: [...new Set(of.map(({ projectId }) => projectId))] },
        notificationId: { $in: of.map(({ _id }) => _id) },
      };
      const sort = { notificationId: 1, firstDeviceId: 1 } as const;
      return (await removeFirst(deliveries, filter, { hint: deliveryHints.devices, sort })).length;
    },

    remove: async (projectId: ProjectId, notificationId: NotificationId) => {
      await deliveries.deleteMany({ projectId, notificationId }, { hint: deliveryHints.devices });
    },
  });
};

/** The events of such a row follow from its fields; those of others contain more than it stores. */
export const allAccepted = ({ tally, waiting }: { readonly tally: Tally; readonly waiting?: unknown }): boolean =>
  waiting === undefined && tally.accepted === tally.devices;

/** The events of such a run are not in its row: the handler that settles it publishes them before it acks the message. */
export const canRebuildEvents = (run: Run, settlement: Settlement): boolean =>
  run.publishedBeforeAck === true && allAccepted(settlement);

/** The events of a final row whose devices were all accepted, made again from what it says. */
export const acceptedEventsOf = (row: DeliveryDocument): OutboxEvent[] => {
  const { results = [], resultOf, settledAt } = row;
  if (!settledAt || !resultOf || !allAccepted(row)) return [];
  const owners = ownersOf(row);
  const devices = Array.from({ length: packedCount(row.deviceIds) }, (_, index) => ({
    id: packedAt(row.deviceIds, index),
    userId: owners[index],
  }));
  return deliveryEvents(row, devices, { results, resultOf: resultOf.buffer, unregistered: [] }, settledAt);
};

export type DeliveryStore = ReturnType<typeof createDeliveryStore>;
