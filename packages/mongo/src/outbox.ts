import { HeraldError, type Logger } from "@herald/kit";
import type { AnyBulkWriteOperation, Collection, Document, Filter } from "mongodb";
import { type IndexSpec, indexName } from "./ensure-indexes.ts";

/** What an outbox needs to know of an event; the rest is between who writes and who publishes it. */
export type OutboxEntry = { readonly id: string; readonly at: Date };

/** Every collection with an outbox needs this index: the sweep finds what a crash left by it. */
export const outboxIndex: IndexSpec = {
  fields: { "outbox.at": 1 },
  purpose: "sweep",
  partial: { outbox: { $exists: true } },
};

type OutboxCollection = {
  // Collections of different documents stand in one list; all the outbox reads of them is `_id`, `projectId` and `outbox`.
  readonly collection: Pick<Collection<never>, "find" | "bulkWrite" | "collectionName">;
  /** The field whose presence says that the document is deleted and stays only until its events are out. */
  readonly tombstone?: string;
};

export type OutboxOptions<Entry extends OutboxEntry> = {
  readonly collections: readonly OutboxCollection[];
  /** Resolves when the broker has the event on disk. Called again with the same entry after a crash. */
  readonly publish: (entry: Entry) => Promise<unknown>;
  readonly log: Logger;
  /** How often is looked for what was left behind; 2 s by default. */
  readonly sweepEveryMs?: number;
  /** Entries younger than this are still being published by who wrote them; 5 s by default. */
  readonly graceMs?: number;
};

export type Outbox = {
  /**
   * Publishes what the documents of a filter have in their outboxes, and takes it out. Never throws: what could not be
   * published stays in the document for the sweep.
   */
  readonly flush: <Doc extends Document>(collection: Collection<Doc>, filter: Filter<Doc>) => Promise<void>;
  /** Publishes what is older than the grace period. Resolves with the number of documents that were cleared. */
  readonly sweep: () => Promise<number>;
  readonly start: () => void;
  /** Ends the sweep and waits for what is under way. */
  readonly stop: () => Promise<void>;
};

/** Publishing waits for the broker's disk; this many at once keep it busy without burying it. */
const concurrency = 64;
/** Documents that are read, published and cleared together. */
const chunk = 500;
/** A sweep that was held up does not keep the next ones from looking. */
const mostChunks = 20;

type Carrier<Entry> = { _id: string; projectId?: string; outbox?: Entry[] } & Document;

/** Empties a document's outbox in one update, unless something was added in the meantime; then only what is out. */
const clearing = <Entry extends OutboxEntry>(
  doc: Carrier<Entry>,
  published: readonly Entry[],
  tombstone: string | undefined,
): AnyBulkWriteOperation<Document>[] => {
  const entries = doc.outbox ?? [];
  const last = entries.at(-1);
  // In a sharded collection the project decides where the document is.
  const filter = doc.projectId === undefined ? { _id: doc._id } : { _id: doc._id, projectId: doc.projectId };
  const pull = {
    updateOne: {
      filter,
      update: { $pull: { outbox: { id: { $in: published.map((entry) => entry.id) } } } },
    },
  } as unknown as AnyBulkWriteOperation<Document>;
  if (published.length < entries.length || !last) return published.length === 0 ? [] : [pull];
  // Entries are only ever added at the end, so same length and same last entry is the same outbox.
  const unchanged = { ...filter, outbox: { $size: entries.length }, [`outbox.${entries.length - 1}.id`]: last.id };
  const all =
    tombstone !== undefined && doc[tombstone] !== undefined
      ? { deleteOne: { filter: unchanged } }
      : { updateOne: { filter: unchanged, update: { $unset: { outbox: "" } } } };
  return [all as unknown as AnyBulkWriteOperation<Document>, pull];
};

/**
 * State and event together: a document carries `outbox: [entry]`, written by the same update that made it true. It is
 * published at once by `flush`; a sweep takes what a crash or an absent broker left. At least once, in order within a
 * document.
 */
export const createOutbox = <Entry extends OutboxEntry>(options: OutboxOptions<Entry>): Outbox => {
  const { collections, publish, log, sweepEveryMs = 2_000, graceMs = 5_000 } = options;
  const tombstones = new Map(collections.map((each) => [each.collection.collectionName, each.tombstone]));
  const running = new Set<Promise<unknown>>();
  let timer: NodeJS.Timeout | undefined;
  let stopped = false;

  const track = <T>(work: Promise<T>): Promise<T> => {
    running.add(work);
    const done = () => running.delete(work);
    work.then(done, done);
    return work;
  };

  /** A document's entries in their order; ends at the first that fails. */
  const publishAll = async (doc: Carrier<Entry>): Promise<{ published: Entry[]; error?: unknown }> => {
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

  /** Publishes and clears some documents; returns how many were cleared, or throws the first error after the rest is done. */
  const settle = async (
    collection: OutboxCollection["collection"],
    docs: readonly Carrier<Entry>[],
  ): Promise<number> => {
    const tombstone = tombstones.get(collection.collectionName);
    const writes: AnyBulkWriteOperation<Document>[] = [];
    let cleared = 0;
    let failure: { error: unknown } | undefined;
    const queue = [...docs];
    const worker = async () => {
      for (let doc = queue.shift(); doc && !isBusAway(failure?.error); doc = queue.shift()) {
        const { published, error } = await publishAll(doc);
        writes.push(...clearing(doc, published, tombstone));
        if (error === undefined) cleared++;
        else failure ??= { error };
      }
    };
    await Promise.all(Array.from({ length: Math.min(concurrency, docs.length) }, worker));
    // In order: the `$pull` is for documents that the write before it did not find unchanged.
    if (writes.length > 0) await collection.bulkWrite(writes as never, { ordered: true });
    if (failure) throw failure.error;
    return cleared;
  };

  const projection = (collection: OutboxCollection["collection"]) => {
    const tombstone = tombstones.get(collection.collectionName);
    return { outbox: 1, projectId: 1, ...(tombstone === undefined ? {} : { [tombstone]: 1 }) };
  };

  const find = (collection: OutboxCollection["collection"], filter: Document, findOptions: Document) =>
    collection
      .find(filter as never, { ...findOptions, projection: projection(collection), limit: chunk })
      .toArray() as unknown as Promise<Carrier<Entry>[]>;

  const flushNow = async (collection: OutboxCollection["collection"], filter: Document): Promise<void> => {
    try {
      const docs = await find(collection, { $and: [filter, { outbox: { $exists: true } }] }, {});
      if (docs.length > 0) await settle(collection, docs);
    } catch (error) {
      log.warn({ err: error, collection: collection.collectionName }, "events stay in the outbox for now");
    }
  };

  const sweepCollection = async ({ collection }: OutboxCollection): Promise<number> => {
    let cleared = 0;
    for (let round = 0; round < mostChunks && !stopped; round++) {
      const before = new Date(Date.now() - graceMs);
      const docs = await find(
        collection,
        // The partial index is used only if the query says that there is an outbox.
        { outbox: { $exists: true }, "outbox.at": { $lt: before } },
        { hint: indexName(outboxIndex), sort: { "outbox.at": 1 } },
      );
      const now = docs.length === 0 ? 0 : await settle(collection, docs);
      cleared += now;
      if (docs.length < chunk || now === 0) break;
    }
    return cleared;
  };

  let failing = false;
  const sweep = async (): Promise<number> => {
    let cleared = 0;
    let failure: { error: unknown } | undefined;
    for (const each of collections) {
      try {
        cleared += await sweepCollection(each);
      } catch (error) {
        failure ??= { error };
      }
    }
    if (cleared > 0) log.info({ cleared }, "the sweep published what was left in outboxes");
    // Once when it begins: while a broker is away, every sweep fails.
    if (failure && !failing) log.warn({ err: failure.error }, "the sweep of the outboxes failed");
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
    flush: (collection, filter) =>
      track(flushNow(collection as unknown as OutboxCollection["collection"], filter as Document)),
    sweep: () => track(sweep()),
    start: () => {
      if (timer === undefined && !stopped) timer = setTimeout(tick, sweepEveryMs);
    },
    stop: async () => {
      stopped = true;
      clearTimeout(timer);
      await Promise.allSettled(running);
    },
  };
};

const isBusAway = (error: unknown): boolean => error instanceof HeraldError && error.code === "bus-away";
