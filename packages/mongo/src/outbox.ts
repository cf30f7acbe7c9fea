import { HeraldError, type Logger } from "@herald/kit";
import type { AnyBulkWriteOperation, Collection, Document } from "mongodb";
import { type BatchOutboxes, batchOutboxes } from "./batch-outboxes.ts";
import { byId, type Carrier, clearing, clearOutboxes, type OutboxEntry } from "./clear-outboxes.ts";
import { retryConflicts } from "./conflicts.ts";
import { type IndexSpec, indexName } from "./ensure-indexes.ts";

/** Every collection with an outbox needs this index for the sweep. */
export const outboxIndex: IndexSpec = {
  fields: { "outbox.at": 1 },
  purpose: "sweep",
  partial: { outbox: { $exists: true } },
};

/** A collection of any documents that carry an outbox: all that is read of them is a Carrier's fields. */
type AnyCollection = { readonly collectionName: string; readonly namespace: string };

/** A document as it was just written, with its new events. */
export type WrittenDocument<Entry> = {
  readonly _id: string;
  readonly projectId: string;
  readonly outbox?: readonly Entry[] | undefined;
};

/** Which documents: those of one id or of some, and of one project where the collection is sharded by it. */
type OutboxFilter = { readonly _id?: string | { readonly $in: readonly string[] }; readonly projectId?: string };

type OutboxCollection = {
  readonly collection: AnyCollection;
  /** The field whose presence says that the document is deleted and stays only until its events are out. */
  readonly tombstone?: string;
};

export type OutboxOptions<Entry extends OutboxEntry> = {
  readonly collections: readonly OutboxCollection[];
  /** Resolves when the broker has stored the event. Called again with the same entry after a crash. */
  readonly publish: (entry: Entry) => Promise<unknown>;
  readonly log: Logger;
  /** How often the sweep runs; every 2 s by default. */
  readonly sweepEveryMs?: number;
  /** The sweep skips entries younger than this, which their writer still publishes; 5 s by default. */
  readonly graceMs?: number;
};

export type Outbox<Entry extends OutboxEntry = OutboxEntry> = {
  /**
   * Publishes the events that a document was just written with, in their order, without reading it again. They are taken out a
   * moment later, together with those of others. Never throws: what could not be published stays in the document for the
   * sweep. `final`: nothing is added to its outbox any more. Not for collections with tombstones.
   */
  readonly publish: (
    collection: AnyCollection,
    doc: WrittenDocument<Entry>,
    options?: { final?: boolean },
  ) => Promise<void>;
  /**
   * Publishes what the documents of a filter have in their outboxes, and takes it out. Never throws: what could not be
   * published stays in the document for the sweep.
   */
  readonly flush: (collection: AnyCollection, filter: OutboxFilter) => Promise<void>;
  /** Publishes entries older than the grace period. Resolves to the number of cleared documents. */
  readonly sweep: () => Promise<number>;
  readonly start: () => void;
  /** Stops the sweep and waits for work in progress. */
  readonly stop: () => Promise<void>;
};

/** Publishing waits for the broker's disk. So many at once keep it busy without overloading it. */
const concurrency = 64;
/** Documents that are read, published and cleared together. */
const chunk = 500;
/** Limits one sweep, so that the next ones start on time. */
const maxChunks = 20;

type Settled = { cleared: number; kept: number; error?: unknown };
type Opened<Entry> = { readonly collection: Collection<Carrier<Entry>>; readonly tombstone?: string | undefined };
/**
 * The transactional outbox: the update that changes a document also writes its events into `outbox`. `flush` publishes them at once; a
 * sweep publishes what a crash or an unavailable broker left. At least once, in order within a document.
 */
export const createOutbox = <Entry extends OutboxEntry>(options: OutboxOptions<Entry>): Outbox<Entry> => {
  const { collections, publish, log, sweepEveryMs = 2_000, graceMs = 5_000 } = options;
  const running = new Set<Promise<unknown>>();
  const pendingClears = new Map<string, BatchOutboxes>();
  let timer: NodeJS.Timeout | undefined;
  let stopped = false;

  const track = <T>(work: Promise<T>): Promise<T> => {
    running.add(work);
    const done = () => running.delete(work);
    work.then(done, done);
    return work;
  };

  /** Publishes a document's entries in order; stops at the first failure. */
  const publishAll = async (
    doc: Pick<WrittenDocument<Entry>, "outbox">,
  ): Promise<{ published: Entry[]; error?: unknown }> => {
    const published: Entry[] = [];
    for (const entry of doc.outbox ?? []) {
      try {
        await publish(entry);
        published.push(entry);
      } catch (error) {
        return { published, error };
      }
    }
    return { published };
  };

  /** Publishes and clears some documents. Stops when the bus is unavailable. */
  const settle = async (
    { collection, tombstone }: Opened<Entry>,
    docs: readonly Carrier<Entry>[],
  ): Promise<Settled> => {
    const writes = new Map<Carrier<Entry>, AnyBulkWriteOperation<Carrier<Entry>>[]>();
    const settled: Settled = { cleared: 0, kept: 0 };
    const queue = [...docs];
    const worker = async () => {
      for (let doc = queue.shift(); doc && !isBusUnavailable(settled.error); doc = queue.shift()) {
        const { published, error } = await publishAll(doc);
        writes.set(doc, clearing(doc, published, tombstone));
        if (error === undefined) settled.cleared++;
        else {
          settled.kept++;
          settled.error ??= error;
        }
      }
    };
    await Promise.all(Array.from({ length: Math.min(concurrency, docs.length) }, worker));
    const ordered = [...writes.keys()].sort(byId).flatMap((doc) => writes.get(doc) ?? []);
    if (ordered.length > 0) await retryConflicts(() => collection.bulkWrite(ordered, { ordered: true }));
    return settled;
  };

  const find = ({ collection, tombstone }: Opened<Entry>, filter: Document, findOptions: Document) =>
    collection
      .find(filter, {
        ...findOptions,
        projection: { outbox: 1, projectId: 1, ...(tombstone === undefined ? {} : { [tombstone]: 1 }) },
        limit: chunk,
      })
      .toArray() as Promise<Carrier<Entry>[]>;

  const flushNow = async (opened: Opened<Entry>, filter: Document): Promise<void> => {
    try {
      for (let more = true; more; ) {
        const docs = await find(opened, { $and: [filter, { outbox: { $exists: true } }] }, {});
        const { cleared, error } = await settle(opened, docs);
        if (error !== undefined) throw error;
        more = docs.length === chunk && cleared > 0;
      }
    } catch (error) {
      log.warn(
        { err: error, collection: opened.collection.collectionName },
        "could not publish events; they stay in the outbox for the sweep",
      );
    }
  };

  const pendingClearsOf = (collection: AnyCollection): BatchOutboxes => {
    const { collectionName } = collection;
    const known = pendingClears.get(collectionName);
    if (known) return known;
    const made = batchOutboxes((documents) =>
      clearOutboxes(collection as unknown as Collection<Carrier<OutboxEntry>>, documents).catch((err: unknown) =>
        log.warn(
          { err, collection: collectionName },
          "could not clear published events; they stay in the outbox for the sweep",
        ),
      ),
    );
    pendingClears.set(collectionName, made);
    return made;
  };

  const publishNow = async (collection: AnyCollection, doc: WrittenDocument<Entry>, final: boolean): Promise<void> => {
    const pending = pendingClearsOf(collection);
    const { _id, projectId, outbox = [] } = doc;
    const { published, error } = await publishAll({ outbox: outbox.filter(({ id }) => !pending.has(_id, id)) });
    pending.add({ _id, projectId, entries: published.map(({ id }) => id), final: final && error === undefined });
    if (error !== undefined)
      log.warn(
        { err: error, collection: collection.collectionName },
        "could not publish events; they stay in the outbox for the sweep",
      );
  };

  const sweepCollection = async (opened: Opened<Entry>): Promise<Settled> => {
    const all: Settled = { cleared: 0, kept: 0 };
    for (let round = 0; round < maxChunks && !stopped; round++) {
      const docs = await find(
        opened,
        // The partial index is used only if the query says that there is an outbox.
        { outbox: { $exists: true }, "outbox.at": { $lt: new Date(Date.now() - graceMs) } },
        // Entries that cannot be published stay first in the index; skip them, so that they do not block the others.
        { hint: indexName(outboxIndex), sort: { "outbox.at": 1 }, skip: all.kept },
      );
      const { cleared, kept, error } = await settle(opened, docs);
      all.cleared += cleared;
      all.kept += kept;
      all.error ??= error;
      if (docs.length < chunk || isBusUnavailable(error)) break;
    }
    return all;
  };

  let failing = false;
  const sweep = async (): Promise<number> => {
    let cleared = 0;
    let failure: unknown;
    for (const each of collections) {
      try {
        const settled = await sweepCollection(opened(each));
        cleared += settled.cleared;
        failure ??= settled.error;
      } catch (error) {
        failure ??= error;
      }
    }
    if (cleared > 0) log.info({ cleared }, "the sweep published events from outboxes");
    // Logs only the first failure: while the broker is unavailable, every sweep fails.
    if (failure !== undefined && !failing)
      log.warn({ err: failure }, "the sweep could not publish all events from outboxes");
    failing = failure !== undefined;
    return cleared;
  };

  const tick = () => {
    if (stopped) return;
    track(sweep()).finally(() => {
      if (!stopped) timer = setTimeout(tick, sweepEveryMs);
    });
  };

  return {
    publish: (collection, doc, { final = false } = {}) => track(publishNow(collection, doc, final)),
    flush: (collection, filter) => {
      const known = collections.find((each) => each.collection.collectionName === collection.collectionName);
      return track(flushNow(opened({ ...known, collection }), filter));
    },
    sweep: () => track(sweep()),
    start: () => {
      if (timer === undefined && !stopped) timer = setTimeout(tick, sweepEveryMs);
    },
    stop: async () => {
      stopped = true;
      clearTimeout(timer);
      await Promise.allSettled(running);
      await Promise.all([...pendingClears.values()].map((pending) => pending.stop()));
    },
  };
};

const opened = <Entry>({ collection, tombstone }: OutboxCollection): Opened<Entry> => ({
  collection: collection as unknown as Collection<Carrier<Entry>>,
  tombstone,
});

const isBusUnavailable = (error: unknown): boolean => error instanceof HeraldError && error.code === "bus-unavailable";
