import { createGroupCommit, hasCode, type Logger, LRUCache } from "@herald/kit";
import type { AnyBulkWriteOperation, Collection, Document } from "mongodb";
import { anyOf } from "./batched.ts";
import { byId, type Carrier, clearing, clearOutboxes, type Out, type OutboxEntry } from "./clear-outboxes.ts";
import { retryConflicts } from "./conflicts.ts";
import { type IndexSpec, indexName } from "./ensure-indexes.ts";

/** Every collection with an outbox needs this index for the sweep. */
export const outboxIndex: IndexSpec = {
  fields: { "outbox.at": 1 },
  purpose: "sweep",
  partial: { outbox: { $exists: true } },
};

/** A collection of any documents with an outbox: only the fields of a Carrier are read. */
type AnyCollection = { readonly collectionName: string; readonly namespace: string };

/** A document that was just written, with its new events. */
export type WrittenDocument<Entry> = {
  readonly _id: string;
  readonly projectId: string;
  readonly outbox?: readonly Entry[] | undefined;
};

/** Selects documents by one id or several, and by project if the collection is sharded by project. */
type OutboxFilter = Partial<Readonly<Record<"_id" | "projectId", string | { readonly $in: readonly string[] }>>>;

type OutboxCollection = {
  readonly collection: AnyCollection;
  /** A field that exists only on deleted documents, which stay until their events are published. */
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

export type Outbox<Entry extends OutboxEntry = OutboxEntry> = ReturnType<typeof createOutbox<Entry>>;

/** Concurrent publishes. Each waits for the broker's disk; this many keep the disk busy without overloading it. */
const concurrency = 64;
/** Documents that are read, published and cleared together. */
const chunk = 500;
/** Documents that may wait for `flushSoon` while the broker is unavailable. The sweep finds the others. */
const maxWaiting = 50_000;
/**
 * Clearing a document alone would cost as much as the write that created its event. A broadcast clears ten in this time, which is far
 * shorter than the 5 s after which the sweep publishes again.
 */
const clearGroups = { max: 100, concurrent: 4, intervalMs: 250 } as const;
/** Events whose publish is remembered: a writer may hand over a document that it read before they were cleared. */
const maxRecent = 10_000;
/** Limits one sweep, so that the next ones start on time. */
const maxChunks = 20;

type Settled = { cleared: number; kept: number; error?: unknown };
type Opened<Entry> = { readonly collection: Collection<Carrier<Entry>>; readonly tombstone?: string | undefined };
type Key = Pick<WrittenDocument<unknown>, "_id" | "projectId">;

/** Makes something once for each collection. */
const perCollection = <Made>(make: (collection: AnyCollection) => Made) => {
  const made = new Map<string, Made>();
  return (collection: AnyCollection): Made => {
    const { collectionName } = collection;
    const known = made.get(collectionName) ?? make(collection);
    made.set(collectionName, known);
    return known;
  };
};

/**
 * The transactional outbox: the update that changes a document also writes its events into `outbox`. `flush` publishes them at once; a
 * sweep publishes events that a crash or an unavailable broker left. At least once, in order within a document.
 */
export const createOutbox = <Entry extends OutboxEntry>(options: OutboxOptions<Entry>) => {
  const { collections, publish, log, sweepEveryMs = 2_000, graceMs = 5_000 } = options;
  const running = new Set<Promise<unknown>>();
  const recent = new LRUCache<string, true>({ max: maxRecent });
  let timer: NodeJS.Timeout | undefined;
  let stopped = false;

  const track = <T>(work: Promise<T>): Promise<T> => {
    running.add(work);
    const done = () => running.delete(work);
    work.then(done, done);
    return work;
  };

  const warn = (err: unknown, { collectionName: collection }: AnyCollection, what = "publish events") =>
    log.warn({ err, collection }, `could not ${what}; they stay in the outbox for the sweep`);

  /** Publishes the entries of a document in order; stops at the first failure. */
  const publishAll = async (entries: readonly Entry[] = []): Promise<{ published: Entry[]; error?: unknown }> => {
    const published: Entry[] = [];
    for (const entry of entries) {
      try {
        await publish(entry);
        published.push(entry);
      } catch (error) {
        return { published, error };
      }
    }
    return { published };
  };

  /** Publishes and clears the outboxes of documents. Stops when the bus is unavailable. */
  const settle = async ({ collection, tombstone }: Opened<Entry>, docs: readonly Carrier<Entry>[]) => {
    const writes = new Map<Carrier<Entry>, AnyBulkWriteOperation<Carrier<Entry>>[]>();
    const settled: Settled = { cleared: 0, kept: 0 };
    const queue = [...docs];
    const worker = async () => {
      for (let doc = queue.shift(); doc && !hasCode(settled.error, "bus-unavailable"); doc = queue.shift()) {
        const { published, error } = await publishAll(doc.outbox);
        writes.set(doc, clearing(doc, published, tombstone));
        if (error === undefined) settled.cleared++;
        else {
          settled.kept++;
          settled.error ??= error;
        }
      }
    };
    await Promise.all(Array.from({ length: Math.min(concurrency, docs.length) }, worker));
    const ordered = docs.toSorted(byId).flatMap((doc) => writes.get(doc) ?? []);
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
      warn(error, opened.collection);
    }
  };

  const known = (collection: AnyCollection): Opened<Entry> => {
    const found = collections.find((each) => each.collection.collectionName === collection.collectionName);
    return opened({ ...found, collection });
  };

  const flushTogether = perCollection((collection) =>
    createGroupCommit<Key, undefined>(
      async (keys) => {
        const filter = { projectId: anyOf(keys.map((key) => key.projectId)), _id: anyOf(keys.map(({ _id }) => _id)) };
        await flushNow(known(collection), filter);
        return keys.map(() => undefined);
      },
      { max: chunk, concurrent: 1, keyOf: ({ projectId }) => projectId, waiting: maxWaiting },
    ),
  );

  /** Never rejects: when it fails, the sweep publishes the events again under the same ids. */
  const clearTogether = perCollection((collection) =>
    createGroupCommit<Out, undefined>(async (documents) => {
      await clearOutboxes(collection as unknown as Collection<Carrier<OutboxEntry>>, documents).catch((err: unknown) =>
        warn(err, collection, "clear published events"),
      );
      return documents.map(() => undefined);
    }, clearGroups),
  );

  const publishNow = async (collection: AnyCollection, doc: WrittenDocument<Entry>, final: boolean): Promise<void> => {
    const { _id, projectId, outbox = [] } = doc;
    const { published, error } = await publishAll(outbox.filter(({ id }) => !recent.has(id)));
    const entries = published.map(({ id }) => id);
    for (const id of entries) recent.set(id, true);
    void track(clearTogether(collection)({ _id, projectId, entries, final: final && error === undefined }));
    if (error !== undefined) warn(error, collection);
  };

  const sweepCollection = async (opened: Opened<Entry>): Promise<Settled> => {
    const all: Settled = { cleared: 0, kept: 0 };
    for (let round = 0; round < maxChunks && !stopped; round++) {
      const docs = await find(
        opened,
        // The database uses the partial index only if the query says that `outbox` exists.
        { outbox: { $exists: true }, "outbox.at": { $lt: new Date(Date.now() - graceMs) } },
        // Entries that cannot be published stay first in the index; skip them, so that they do not block the others.
        { hint: indexName(outboxIndex), sort: { "outbox.at": 1 }, skip: all.kept },
      );
      const { cleared, kept, error } = await settle(opened, docs);
      all.cleared += cleared;
      all.kept += kept;
      all.error ??= error;
      if (docs.length < chunk || hasCode(error, "bus-unavailable")) break;
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
    /**
     * Publishes the new events of a document that was just written, in order and without reading it again. They are removed from the
     * outbox a moment later, together with events of other documents. Never throws: unpublished events stay in the document for the
     * sweep. `final`: no more events will be added to the outbox. Not for collections with tombstones.
     */
    publish: (collection: AnyCollection, doc: WrittenDocument<Entry>, { final = false } = {}): Promise<void> =>
      track(publishNow(collection, doc, final)),

    /**
     * Publishes the events in the outboxes of matching documents, and removes them. Never throws: unpublished events stay in the
     * document for the sweep.
     */
    flush: (collection: AnyCollection, filter: OutboxFilter): Promise<void> =>
      track(flushNow(known(collection), filter)),

    /**
     * Does the same soon, for documents that were just written, many together: each alone would cost three round trips. Projects take
     * turns.
     */
    flushSoon: (collection: AnyCollection, projectId: string, ids: Iterable<string>): void => {
      // Refused when too many wait: then the sweep publishes the events.
      for (const _id of ids) track(flushTogether(collection)({ _id, projectId })).catch(() => undefined);
    },

    /** Publishes entries older than the grace period. Resolves to the number of cleared documents. */
    sweep: (): Promise<number> => track(sweep()),

    start: (): void => {
      if (timer === undefined && !stopped) timer = setTimeout(tick, sweepEveryMs);
    },

    /** Stops the sweep and waits for work in progress. */
    stop: async (): Promise<void> => {
      stopped = true;
      clearTimeout(timer);
      while (running.size > 0) await Promise.allSettled(running);
    },
  };
};

const opened = <Entry>({ collection, tombstone }: OutboxCollection): Opened<Entry> => ({
  collection: collection as unknown as Collection<Carrier<Entry>>,
  tombstone,
});
