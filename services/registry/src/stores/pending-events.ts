import { randomUUID } from "node:crypto";
import type { DeviceId, OutboxEvent, ProjectId } from "@herald/contracts";
import { createGroupCommit, HeraldError, type Logger } from "@herald/kit";
import { anyOf, ensureIndexes, guardStore, type IndexSpec, indexName } from "@herald/mongo";
import type { Collection, Db } from "mongodb";
import type { DeviceDocument } from "./device-document.ts";

/** Events of devices that one command inserts: written before it, and removed when those of the inserted ones are published. */
type PendingDocument = { readonly _id: string; readonly at: Date; readonly events: readonly OutboxEvent[] };

const indexes = { at: { fields: { at: 1 }, purpose: "sweep" } } as const satisfies Record<string, IndexSpec>;

/** Younger ones are still with the process that wrote them. */
const graceMs = 5_000;
/** A device that is not there by then was never inserted: no command takes longer, whatever its process lost. */
const maxInsertMs = 120_000;
const maxSwept = 100;
/** More than a second of the highest rate. Past it the sweep publishes: memory stays bounded while the broker is slow. */
const maxPublishing = 20_000;
/** A removal costs the same for one record as for some. */
const removals = { most: 500, concurrent: 1, intervalMs: 250 };

/** One command's events. `left`: devices whose outcome is not settled. */
export type PendingRecord = { readonly id: string; left: number; kept: boolean };

/** Events name their device as subject. */
const deviceOf = ({ subject }: OutboxEvent): DeviceId => subject as DeviceId;
const projectOf = ({ data }: OutboxEvent): ProjectId => data.project_id;

export type PendingEvents = ReturnType<typeof createPendingEvents>;

/**
 * The outbox of devices that are new. One in each document would have every document written twice, with all its index entries; here a
 * command has one record for all its devices. After a crash the sweep publishes the events of those devices that are stored.
 */
export const createPendingEvents = (
  db: Db,
  devices: Collection<DeviceDocument>,
  {
    publish,
    now,
    log,
  }: {
    /** Resolves when the event is on disk. */
    readonly publish: (event: OutboxEvent) => Promise<void>;
    readonly now: () => Date;
    readonly log: Logger;
  },
) => {
  const pending = db.collection<PendingDocument>("pendingEvents");
  const running = new Set<Promise<void>>();
  let publishing = 0;

  const track = (work: Promise<void>): void => {
    running.add(work);
    void work.finally(() => running.delete(work));
  };

  const remove = createGroupCommit<string, undefined>(async (ids) => {
    await pending.deleteMany({ _id: anyOf([...ids].sort()) });
    return ids.map(() => undefined);
  }, removals);

  const publishAll = async (events: readonly OutboxEvent[]): Promise<void> => {
    publishing += events.length;
    try {
      await Promise.all(events.map(publish));
    } finally {
      publishing -= events.length;
    }
  };

  const finish = async (record: PendingRecord, events: readonly OutboxEvent[]): Promise<void> => {
    try {
      if (events.length > 0 && publishing + events.length > maxPublishing)
        throw new HeraldError("queue-full", "too many events wait to be published");
      await publishAll(events);
    } catch (err) {
      if (!record.kept) log.warn({ err }, "events of new devices stay in the database for now");
      record.kept = true;
    }
    record.left--;
    if (record.left === 0 && !record.kept)
      await remove(record.id).catch((err: unknown) =>
        log.warn({ err }, "published events stay in the database for now"),
      );
  };

  /** Of the devices, those that are stored. */
  const stored = async (events: readonly OutboxEvent[]): Promise<Set<DeviceId>> => {
    const ids = [...new Set(events.map(deviceOf))];
    const found = await devices
      .find(
        { _id: anyOf(ids), projectId: anyOf(events.map(projectOf)) },
        { hint: "_id_", projection: { _id: 1 }, batchSize: ids.length + 1 },
      )
      .toArray();
    return new Set(found.map(({ _id }) => _id));
  };

  const sweepOne = async ({ _id, at, events }: PendingDocument): Promise<void> => {
    const there = await stored(events);
    await publishAll(events.filter((event) => there.has(deviceOf(event))));
    const rest = events.filter((event) => !there.has(deviceOf(event)));
    if (rest.length === 0 || at.getTime() < now().getTime() - maxInsertMs) await pending.deleteOne({ _id });
    else if (rest.length < events.length) await pending.updateOne({ _id }, { $set: { events: rest } });
  };

  return guardStore({
    ensureIndexes: () => ensureIndexes(pending, Object.values(indexes)),

    /** Writes the events of devices that are inserted next. `count`: of these devices. */
    add: async (events: readonly OutboxEvent[], count: number): Promise<PendingRecord> => {
      const record = { id: randomUUID(), left: count, kept: false };
      await pending.insertOne({ _id: record.id, at: now(), events });
      return record;
    },

    /** Publishes the events of one device that is inserted, none of one that is not; the record goes with its last device. */
    settle: async (record: PendingRecord, events: readonly OutboxEvent[]): Promise<void> => {
      track(finish(record, events));
    },

    /** Publishes what a crash or an unavailable bus left behind. Any number of processes may: an event's id is the same each time. */
    sweep: async (signal: AbortSignal): Promise<void> => {
      const left = await pending
        .find(
          { at: { $lt: new Date(now().getTime() - graceMs) } },
          { hint: indexName(indexes.at), sort: { at: 1 }, limit: maxSwept, batchSize: maxSwept + 1 },
        )
        .toArray();
      for (const record of left) if (!signal.aborted) await sweepOne(record);
    },

    /** Resolves when everything that is settled so far is published and removed, or left to the sweep. */
    idle: async (): Promise<void> => {
      while (running.size > 0) await Promise.all(running);
    },
  });
};
