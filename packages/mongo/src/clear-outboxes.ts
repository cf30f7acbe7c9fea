import type { AnyBulkWriteOperation, Collection, Document } from "mongodb";
import { anyOf } from "./batched.ts";
import { retryConflicts } from "./conflicts.ts";

/** A document whose events are published, and the events that it still contains. */
export type Out = {
  readonly _id: string;
  readonly projectId: string;
  readonly entries: readonly string[];
  /** No more events will be added to its outbox. */
  readonly final: boolean;
};

/** The fields of an event that the outbox needs. */
export type OutboxEntry = { readonly id: string; readonly at: Date };

/** The fields that are read of a document with an outbox. */
export type Carrier<Entry> = { _id: string; projectId?: string; outbox?: Entry[] } & Document;

/** Removes published entries, the empty outbox, and then the document if it is a tombstone. */
export const clearing = <Entry extends OutboxEntry>(
  doc: Carrier<Entry>,
  published: readonly Entry[],
  tombstone: string | undefined,
): AnyBulkWriteOperation<Carrier<Entry>>[] => {
  if (published.length === 0) return [];
  // The shard key is the project.
  const filter = doc.projectId === undefined ? { _id: doc._id } : { _id: doc._id, projectId: doc.projectId };
  const update = {
    updateOne: { filter: { ...filter, outbox: { $exists: true } }, update: without(published.map(({ id }) => id)) },
  };
  const remove =
    tombstone === undefined || doc[tombstone] === undefined
      ? []
      : [{ deleteOne: { filter: { ...filter, outbox: { $exists: false }, [tombstone]: { $exists: true } } } }];
  return [update, ...remove] as AnyBulkWriteOperation<Carrier<Entry>>[];
};

/** Removes published entries from documents of one collection; keeps entries that were added meanwhile. */
export const clearOutboxes = async (collection: Collection<Carrier<OutboxEntry>>, documents: readonly Out[]) => {
  // Names the projects, so that a sharded collection queries only their shards.
  const filterOf = (some: readonly Out[]) => ({
    _id: anyOf(some.map(({ _id }) => _id)),
    projectId: anyOf(some.map(({ projectId }) => projectId)),
  });
  const final = documents.filter((one) => one.final);
  const open = documents.filter((one) => !one.final);
  const hint = "_id_";
  if (final.length > 0)
    await retryConflicts(() => collection.updateMany(filterOf(final), { $unset: { outbox: "" } }, { hint }));
  if (open.length > 0) {
    const update = without(open.flatMap(({ entries }) => entries));
    await retryConflicts(() =>
      collection.updateMany({ ...filterOf(open), outbox: { $exists: true } }, update as Document[], { hint }),
    );
  }
};

/** Removes entries, and the outbox with the last one, in one update: no entry can be added in between. */
const without = (entries: readonly string[]) => [
  {
    $set: {
      outbox: { $filter: { input: "$outbox", cond: { $not: { $in: ["$$this.id", { $literal: entries }] } } } },
    },
  },
  { $set: { outbox: { $cond: [{ $eq: ["$outbox", []] }, "$$REMOVE", "$outbox"] } } },
];

/** Every writer uses the same order: two bulks in opposite orders deadlock on PostgreSQL, for minutes. */
export const byId = <Entry>(one: Carrier<Entry>, other: Carrier<Entry>): number =>
  one._id < other._id ? -1 : one._id > other._id ? 1 : 0;
