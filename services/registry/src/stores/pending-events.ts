import { randomUUID } from "node:crypto";
import type { DeviceId, OutboxEvent, ProjectId } from "@herald/contracts";
import { createGroupCommit, HeraldError, type Logger } from "@herald/kit";
import { anyOf, byIndex, ensureIndexes, findByIds, findSome, guardStore, type IndexSpec } from "@herald/mongo";
import type { Collection, Db } from "mongodb";
import type { DeviceDocument } from "./device-document.ts";

/** The events of an insert command: written before it, removed when they are published. */
type PendingDocument = { readonly _id: string; readonly at: Date; readonly events: readonly OutboxEvent[] };

const indexes = { at: { fields: { at: 1 }, purpose: "sweep" } } as const satisfies Record<string, IndexSpec>;

/** The process that wrote a younger record is still working on it. */
const graceMs = 5_000;
/** No insert takes longer: a device that is missing by then was not inserted. */
const maxInsertMs = 120_000;
const maxSwept = 100;
/** More than a second of the highest rate. Events beyond it are left to the sweep, which bounds the memory while the broker is slow. */
const maxPublishing = 20_000;
/** From this many events on, a batch of their own costs no more than a batch shared with other requests. */
const manyEvents = 100;
/** A removal costs the same for one record as for several. */
const removals = { max: 500, concurrent: 1, intervalMs: 250 };

/** `left`: calls of `settle` that are still to come; `kept`: the sweep must publish the events. */
export type PendingRecord = { readonly id: string; left: number; kept: boolean };

const deviceOf = ({ subject }: OutboxEvent): DeviceId => subject as DeviceId;
/** Only events of devices are stored here. */
const projectOf = ({ data }: OutboxEvent): ProjectId => data.project_id as ProjectId;

export type PendingEvents = ReturnType<typeof createPendingEvents>;

/** The outbox of new devices: one record per insert command. An outbox in each device would write it and its index entries twice. */
export const createPendingEvents = (
  db: Db,
  devices: Collection<DeviceDocument>,
  {
    publish,
    publishMany,
    now,
    log,
  }: {
    /** Resolves when the stream has stored the events. */
    readonly publish: (events: readonly OutboxEvent[]) => Promise<void>;
    /** The same for many, in batches of their own. */
    readonly publishMany: (events: readonly OutboxEvent[]) => Promise<void>;
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
      // A few events share a batch with the events of other requests.
      await (events.length < manyEvents ? publish(events) : publishMany(events));
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

  const stored = async (events: readonly OutboxEvent[]): Promise<Set<DeviceId>> => {
    const filter = { projectId: anyOf(events.map(projectOf)) };
    const found = await findByIds(devices, events.map(deviceOf), filter, { projection: { _id: 1 } });
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

    /** Call it before the insert. `count`: how often `settle` will be called for the record. */
    add: async (events: readonly OutboxEvent[], count: number): Promise<PendingRecord> => {
      const record = { id: randomUUID(), left: count, kept: false };
      await pending.insertOne({ _id: record.id, at: now(), events });
      return record;
    },

    /** Publishes the events of inserted devices; no events if none was inserted. The last call removes the record. */
    settle: async (record: PendingRecord, events: readonly OutboxEvent[]): Promise<void> => {
      track(finish(record, events));
    },

    /** Publishes events that a crash or an unavailable bus left. Several processes may do so, because event ids stay the same. */
    sweep: async (signal: AbortSignal): Promise<void> => {
      const old = { at: { $lt: new Date(now().getTime() - graceMs) } };
      const left = await findSome(pending, old, { ...byIndex(indexes.at), limit: maxSwept });
      for (const record of left) if (!signal.aborted) await sweepOne(record);
    },

    /** Resolves when all settled events are published, or left to the sweep. */
    idle: async (): Promise<void> => {
      while (running.size > 0) await Promise.all(running);
    },
  });
};
