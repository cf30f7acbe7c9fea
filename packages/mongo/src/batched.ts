import { createGroupCommit } from "@herald/kit";
import {
  type AnyBulkWriteOperation,
  type Collection,
  type Document,
  type Filter,
  MongoBulkWriteError,
  type OptionalUnlessRequiredId,
  type UpdateFilter,
} from "mongodb";
import { anyOf } from "./any-of.ts";
import { isDuplicateKey } from "./conflicts.ts";
import { orUnavailable } from "./unavailable.ts";

/**
 * A command costs the database, its client and both their kernels far more than a document in it. What is asked while another
 * command is under way goes together in the next one; nothing waits for others to come. Each caller hears of its own document.
 */
export const inOneCommand = <Item, Result>(
  command: (items: readonly Item[]) => Promise<readonly Result[]>,
  /** Whose an item is, so that many of one project do not hold up those of another. */
  keyOf?: (item: Item) => string,
) =>
  createGroupCommit<Item, Result>(
    // Who waits behind a command that finds the database unavailable is told so at once, not a timeout later each.
    (items) => command(items).catch((error: unknown) => Promise.reject(orUnavailable(error))),
    // One at a time: a second under way at once makes both smaller, and costs more than its overlap gains.
    { most: 250, concurrent: 1, atEndOfTurn: true, ...(keyOf && { keyOf }) },
  );

/** A document of a service, which is one project's. */
type Owned = Document & { readonly _id: string; readonly projectId: string };

const projectOf = ({ projectId }: Pick<Owned, "projectId">): string => projectId;

/** What became of one document of several: `done` is false where a unique index has its key already. */
export type Inserted = { readonly done: boolean } | { readonly error: unknown };

/** Inserts documents in one command; resolves to what became of each, in order. Throws where the command failed as a whole. */
export const insertEach = async <Doc extends Owned>(
  collection: Collection<Doc>,
  docs: readonly Doc[],
): Promise<Inserted[]> => {
  try {
    await collection.insertMany(docs as unknown as OptionalUnlessRequiredId<Doc>[], { ordered: false });
    return docs.map(() => ({ done: true }));
  } catch (error) {
    return outcomes(error, docs.length);
  }
};

/**
 * Inserts one document, together with others. Resolves to false where a unique index has its key already. Throws as `insertOne`
 * does, for this document alone unless the command failed as a whole.
 */
export const insertBatched = <Doc extends Owned>(collection: Collection<Doc>): ((doc: Doc) => Promise<boolean>) => {
  const commit = inOneCommand<Doc, Inserted>((docs) => insertEach(collection, docs), projectOf);
  return async (doc) => {
    const inserted = await commit(doc);
    if ("error" in inserted) throw inserted.error;
    return inserted.done;
  };
};

/** What became of each document of an unordered insert that failed. Throws where the error says that of none. */
const outcomes = (error: unknown, count: number): Inserted[] => {
  if (!(error instanceof MongoBulkWriteError)) throw error;
  const refused = [error.writeErrors].flat();
  if (refused.length === 0) throw error;
  const all: Inserted[] = Array.from({ length: count }, () => ({ done: true }));
  for (const one of refused) {
    const alone = new MongoBulkWriteError(
      { message: one.errmsg ?? "refused", code: one.code, writeErrors: [one] },
      error.result,
    );
    all[one.index] = isDuplicateKey(alone) ? { done: false } : { error: alone };
  }
  return all;
};

export type Updated = "updated" | "not found" | "unknown";

type Key = Pick<Owned, "_id" | "projectId">;

type Update<Doc> = {
  readonly key: Key;
  /** What else must be true of the document. */
  readonly condition: Filter<Doc>;
  readonly update: UpdateFilter<Doc>;
};

/**
 * Updates one document if it is as `condition` says, together with others; those to which the same is done are one operation.
 * `unknown`: of those in the command some were not found, and it does not say which. Throws as `updateOne` does; then, and where it is
 * unknown, it may have been updated.
 */
export const updateBatched = <Doc extends Owned>(
  collection: Collection<Doc>,
): ((key: Key, condition: Filter<Doc>, update: UpdateFilter<Doc>) => Promise<Updated>) => {
  const commit = inOneCommand<Update<Doc>, Updated>(
    async (updates) => {
      // Of one collection's updates, so that what reads the same as JSON is the same.
      const same = Map.groupBy(updates, ({ condition, update }) => JSON.stringify([condition, update]));
      const operations = [...same.values()].map((all): AnyBulkWriteOperation<Doc> => {
        const [first] = all as [Update<Doc>, ...Update<Doc>[]];
        const keys = {
          _id: anyOf(all.map(({ key }) => key._id).sort()),
          projectId: anyOf(all.map(({ key }) => key.projectId)),
        };
        const operation = {
          filter: { ...first.condition, ...keys } as Filter<Doc>,
          update: first.update,
          hint: "_id_",
        };
        // One alone the driver itself tries again when its connection breaks.
        return all.length === 1 ? { updateOne: operation } : { updateMany: operation };
      });
      const { matchedCount } = await collection.bulkWrite(operations, { ordered: false });
      if (matchedCount === updates.length) return updates.map(() => "updated");
      return updates.map(() => (matchedCount === 0 ? "not found" : "unknown"));
    },
    ({ key }) => key.projectId,
  );
  return (key, condition, update) => commit({ key, condition, update });
};

/** Reads one document by its id, together with others; a projection must have its project. Null where the project has none. */
export const findBatched = <Doc extends Owned, Projection extends keyof Doc = keyof Doc>(
  collection: Collection<Doc>,
  projection?: Document,
): ((key: Key) => Promise<Pick<Doc, Projection> | null>) => {
  const commit = inOneCommand<Key, Pick<Doc, Projection> | null>(async (keys) => {
    const filter = {
      _id: anyOf(keys.map(({ _id }) => _id)),
      // With their projects, so that a sharded collection asks only the shards that have them.
      projectId: anyOf(keys.map(({ projectId }) => projectId)),
    } as unknown as Filter<Doc>;
    const found = await collection.find(filter, { hint: "_id_", ...(projection ? { projection } : {}) }).toArray();
    const byId = new Map(found.map((doc) => [doc._id as string, doc as unknown as Doc]));
    return keys.map(({ _id, projectId }) => {
      const doc = byId.get(_id);
      return doc?.projectId === projectId ? doc : null;
    });
  }, projectOf);
  return (key) => commit(key);
};
