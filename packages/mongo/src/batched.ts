import { createGroupCommit, withTimeout } from "@herald/kit";
import {
  type AnyBulkWriteOperation,
  BSON,
  type Collection,
  type Document,
  type Filter,
  type FindOptions,
  MongoBulkWriteError,
  MongoInvalidArgumentError,
  MongoOperationTimeoutError,
  type OptionalUnlessRequiredId,
  type UpdateFilter,
  type WithId,
  type WriteError,
} from "mongodb";
import { areDuplicateKeys, isDuplicateKey } from "./conflicts.ts";
import { type IndexSpec, indexName } from "./ensure-indexes.ts";
import { orUnavailable, orUnavailableOrBusy } from "./unavailable.ts";

/** A filter for any of these values, without duplicates. */
export const anyOf = <Value>(values: Iterable<Value>): { $in: Value[] } => ({ $in: [...new Set(values)] });

/** A filter for ASCII texts that begin with `prefix`: a range of an index. */
export const beginsWith = (prefix: string): { $gte: string; $lt: string } => ({ $gte: prefix, $lt: `${prefix}\x7f` });

/**
 * A filter like {@link anyOf} for a field that a partial index requires. From a list of at most 100 values PostgreSQL infers that the field
 * exists. With a longer list it reads the named index from end to end, unless the filter says `$exists`.
 */
export const anyExisting = <Value>(values: Iterable<Value>): { $in: Value[]; $exists: true } => ({
  ...anyOf(values),
  $exists: true,
});

/**
 * Longer than any of these commands takes. The driver waits for room to write without noticing that the connection was closed, and
 * all commands behind such a command would wait forever.
 */
const commandMs = 10_000;

/** Throws `database-unavailable` at once if the command finds the database unavailable, or after 10 s without a reply. */
export const withinDeadline = async <Result>(command: Promise<Result>): Promise<Result> => {
  try {
    if (!(await withTimeout(commandMs, command)))
      throw new MongoOperationTimeoutError(`no reply within ${commandMs / 1_000} s`);
    return await command;
  } catch (error) {
    throw orUnavailable(error);
  }
};

/** Whether the driver could not encode a command, because of one of its documents. It has sent nothing then. */
const isUnencodable = (error: unknown): boolean =>
  error instanceof BSON.BSONError || error instanceof MongoInvalidArgumentError || error instanceof RangeError;

/**
 * A command costs the database and its client far more than a document in it. Calls that arrive while a command runs share the next
 * one; no call waits for others to arrive. Each caller gets the result of its own document, also if another one cannot be encoded.
 */
export const inOneCommand = <Item, Result>(
  command: (items: readonly Item[]) => Promise<readonly (Result | Promise<Result>)[]>,
  /** The project of an item, so that one project does not delay the others. */
  keyOf?: (item: Item) => string,
) =>
  createGroupCommit<Item, Result>(
    async (items) => {
      const run = (some: readonly Item[]) => withinDeadline(command(some));
      try {
        // When a command finds the database unavailable, the calls behind it fail at once instead of one timeout later each.
        return await run(items);
      } catch (error) {
        if (items.length === 1 || !isUnencodable(error)) throw error;
        return items.map(async (item) => (await run([item]))[0] as Result);
      }
    },
    // One command at a time: two would be smaller each, and cost more than their overlap saves.
    { max: 256, concurrent: 1, ...(keyOf && { keyOf }) },
  );

/** A document that belongs to a project. */
type Owned = Document & { readonly _id: string; readonly projectId: string };

const projectOf = ({ projectId }: Pick<Owned, "projectId">): string => projectId;

/** The result for one document. Without an error `done` is false when a unique index already has its key. */
export type Inserted = { readonly done: boolean; readonly error?: unknown };

/** Inserts documents in one command and resolves to the result of each, in order. Throws when the whole command failed. */
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
 * Inserts one document, in a command with others. Resolves to false when a unique index already has its key. Throws as `insertOne`
 * does: for this document alone, unless the whole command failed.
 */
export const insertBatched = <Doc extends Owned>(collection: Collection<Doc>) => {
  const commit = inOneCommand<Doc, Inserted>((docs) => insertEach(collection, docs), projectOf);
  const insert = async (doc: Doc): Promise<boolean> => {
    const { done, error } = await commit(doc);
    if (error !== undefined) throw error;
    return done;
  };
  /** Inserts several documents, each with its own result: errors are as those of a guarded store. Does not reject. */
  insert.all = async (docs: readonly Doc[]): Promise<Inserted[]> =>
    (await commit.all(docs)).map((each) => {
      const { done, error } = each.status === "fulfilled" ? each.value : { done: false, error: each.reason };
      return error === undefined ? { done } : { done, error: orUnavailableOrBusy(error) };
    });
  return insert;
};

/** The error of one operation of several, as if it had been alone. */
const errorOf = ({ result }: MongoBulkWriteError, one: WriteError): MongoBulkWriteError =>
  new MongoBulkWriteError({ message: one.errmsg ?? "refused", code: one.code, writeErrors: [one] }, result);

/** The result of each document of an unordered insert that failed. Throws when the error does not contain them. */
const outcomes = (error: unknown, count: number): Inserted[] => {
  if (!(error instanceof MongoBulkWriteError)) throw error;
  const refused = [error.writeErrors].flat();
  if (refused.length === 0) throw error;
  const all: Inserted[] = Array.from({ length: count }, () => ({ done: true }));
  for (const one of refused) {
    const alone = errorOf(error, one);
    all[one.index] = { done: false, error: isDuplicateKey(alone) ? undefined : alone };
  }
  return all;
};

export type Updated = "updated" | "not found" | "unknown";

/** A value and not a rejection: the command may have been given up by then. */
type Refused = { readonly refused: unknown };

type Key = Pick<Owned, "_id" | "projectId">;

type Update<Doc> = {
  readonly key: Key;
  /** Further conditions on the document. */
  readonly condition: Filter<Doc>;
  readonly update: UpdateFilter<Doc>;
  /** Updates of a collection with the same text are equal. Absent: their JSON is compared. */
  readonly same?: string | undefined;
};

/**
 * Updates one document if it matches `condition`, in a command with others; equal updates are one operation. Resolves to `unknown` when
 * the command did not find all its documents, and does not say which. After `unknown`, or when it throws as `updateOne` does, the document
 * may have been updated. An update that the database refuses fails no other.
 */
export const updateBatched = <Doc extends Owned>(collection: Collection<Doc>) => {
  const commit = inOneCommand<Update<Doc>, Updated | Refused>(
    async (updates) => {
      // All updates are for one collection, so equal JSON means equal updates.
      const same = Map.groupBy(
        updates,
        ({ condition, update, same: text }) => text ?? JSON.stringify([condition, update]),
      );
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
        // `updateOne`, because the driver retries it when its connection breaks.
        return all.length === 1 ? { updateOne: operation } : { updateMany: operation };
      });
      const { matchedCount, refused } = await writeEach(collection, operations);
      const failed = new Map(
        [...same.values()].flatMap((all, at) => all.map((one) => [one, refused.get(at)] as const)),
      );
      const sent = updates.filter((one) => failed.get(one) === undefined).length;
      const rest = matchedCount === sent ? "updated" : matchedCount === 0 ? "not found" : "unknown";
      return updates.map((one) => (failed.get(one) === undefined ? rest : { refused: failed.get(one) }));
    },
    ({ key }) => key.projectId,
  );
  const update = async (key: Key, condition: Filter<Doc>, change: UpdateFilter<Doc>): Promise<Updated> => {
    const result = await commit({ key, condition, update: change });
    if (typeof result === "object") throw result.refused;
    return result;
  };
  /** Updates several documents, each with its own result: errors are as those of a guarded store. Does not reject. */
  update.all = async (updates: readonly Update<Doc>[]): Promise<PromiseSettledResult<Updated>[]> =>
    (await commit.all(updates)).map((each) => {
      if (each.status === "fulfilled" && typeof each.value === "string")
        return { status: "fulfilled", value: each.value };
      const error = each.status === "rejected" ? each.reason : (each.value as Refused).refused;
      return { status: "rejected", reason: orUnavailableOrBusy(error) };
    });
  return update;
};

/** Performs operations in one command. `refused`: the errors of those that the database refused, by index. Throws if the whole failed. */
const writeEach = async <Doc extends Document>(
  collection: Collection<Doc>,
  operations: AnyBulkWriteOperation<Doc>[],
): Promise<{ readonly matchedCount: number; readonly refused: ReadonlyMap<number, unknown> }> => {
  try {
    const { matchedCount } = await collection.bulkWrite(operations, { ordered: false });
    return { matchedCount, refused: new Map() };
  } catch (error) {
    if (!(error instanceof MongoBulkWriteError) || [error.writeErrors].flat().length === 0) throw error;
    const { matchedCount } = error.result;
    return {
      matchedCount,
      refused: new Map([error.writeErrors].flat().map((one) => [one.index, errorOf(error, one)])),
    };
  }
};

/**
 * The documents with these ids that match the filter, in one reply. Without a hint: PostgreSQL finds ids by the primary key anyway, and a
 * hint costs it 0.4 ms a query.
 */
export const findByIds = <Doc extends Document>(
  collection: Collection<Doc>,
  ids: Iterable<string>,
  filter: Filter<Doc>,
  options: FindOptions = {},
): Promise<WithId<Doc>[]> => {
  const _id = anyOf(ids);
  return collection.find({ ...filter, _id } as Filter<Doc>, { batchSize: _id.$in.length + 1, ...options }).toArray();
};

/** All documents of projects, by an index that begins with the project. */
export const findByProjects =
  <Doc extends Owned>(collection: Collection<Doc>, index: IndexSpec) =>
  (projectIds: readonly Doc["projectId"][]): Promise<WithId<Doc>[]> =>
    collection.find({ projectId: anyOf(projectIds) } as Filter<Doc>, { hint: indexName(index) }).toArray();

/** Reads one document by its id, in a command with others. A projection must include `projectId`. Null when the project has none. */
export const findBatched = <Doc extends Owned, Projection extends keyof Doc = keyof Doc>(
  collection: Collection<Doc>,
  projection?: Document,
) =>
  inOneCommand<Key, Pick<Doc, Projection> | null>(async (keys) => {
    const ids = keys.map(({ _id }) => _id);
    // Names the projects, so that a sharded collection queries only their shards.
    const filter = { projectId: anyOf(keys.map(({ projectId }) => projectId)) } as unknown as Filter<Doc>;
    const found = await findByIds(collection, ids, filter, projection && { projection });
    const byId = new Map(found.map((doc) => [doc._id as string, doc as unknown as Doc]));
    return keys.map(({ _id, projectId }) => {
      const doc = byId.get(_id);
      return doc?.projectId === projectId ? doc : null;
    });
  }, projectOf);

/**
 * Inserts the documents whose keys no unique index has yet, and does not change existing ones. Returns the refused documents; after a lost
 * reply, a retry also returns what the first attempt stored. Repeatable.
 */
export const insertNew = async <Doc extends Document & { readonly _id: string | number }>(
  collection: Collection<Doc>,
  documents: readonly Doc[],
): Promise<Doc[]> => {
  if (documents.length === 0) return [];
  // Always in the same order: writers of the same ids in different orders deadlock in FerretDB.
  const sorted = documents.toSorted((one, other) => (one._id < other._id ? -1 : 1));
  try {
    await collection.insertMany(sorted as OptionalUnlessRequiredId<Doc>[], { ordered: false });
    return [];
  } catch (error) {
    if (!areDuplicateKeys(error)) throw error;
    return [(error as MongoBulkWriteError).writeErrors].flat().flatMap(({ index }) => sorted[index] ?? []);
  }
};

/** The same; resolves to false when any document was refused. */
export const insertMissing = async <Doc extends Document & { readonly _id: string | number }>(
  collection: Collection<Doc>,
  documents: readonly Doc[],
): Promise<boolean> => (await insertNew(collection, documents)).length === 0;
