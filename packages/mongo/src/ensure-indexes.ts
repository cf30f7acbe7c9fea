import { isDeepStrictEqual } from "node:util";
import {
  type Collection,
  type CreateIndexesOptions,
  type Document,
  type IndexDescription,
  MongoServerError,
} from "mongodb";

export type IndexSpec = {
  /** In the order of the index; 1 ascending, -1 descending. */
  readonly fields: Readonly<Record<string, 1 | -1>>;
  /** Its purpose in one word: `list`, `unique`, `sweep`. */
  readonly purpose: string;
  readonly unique?: boolean;
  /** The index contains only matching documents; a query must include the same condition to use it. */
  readonly partial?: Document;
  readonly expireAfterSeconds?: number;
};

/** The index's name, for `hint`: `<fields joined by _>__<purpose>`. */
export const indexName = ({ fields, purpose }: Pick<IndexSpec, "fields" | "purpose">): string =>
  `${Object.keys(fields).join("_")}__${purpose}`;

/** The names of some indexes, for `hint`. */
export const indexNames = <Key extends string>(indexes: Readonly<Record<Key, IndexSpec>>) =>
  Object.fromEntries(Object.entries<IndexSpec>(indexes).map(([key, index]) => [key, indexName(index)])) as Record<
    Key,
    string
  >;

/** The condition of a partial index on the documents that have a field. */
export const having = (field: string): Document => ({ [field]: { $exists: true } });

/** Options of a query that reads in the order of an index. */
export const byIndex = (index: IndexSpec) => ({ hint: indexName(index), sort: index.fields });

/**
 * FerretDB reads some 50,000 notifications a second for a new index. A build that the driver gives up begins again, and would never end. The
 * driver's types lack this option.
 */
const build = { socketTimeoutMS: 6 * 3_600_000 } as CreateIndexesOptions;

const namespaceNotFound = 26;
const indexNotFound = 27;

const stored = async (collection: Collection<never>): Promise<Document[]> => {
  try {
    return await collection.listIndexes().toArray();
  } catch (error) {
    // The first index or document creates the collection.
    if (error instanceof MongoServerError && error.code === namespaceNotFound) return [];
    throw error;
  }
};

/** The parts of an index definition that decide its behaviour, in one form for wanted and stored indexes. */
const essence = (index: Document) => ({
  key: Object.entries(index.key as Record<string, number>).map(([field, direction]) => [field, Number(direction)]),
  unique: index.unique === true,
  partial: index.partialFilterExpression ?? null,
  expireAfterSeconds: index.expireAfterSeconds === undefined ? null : Number(index.expireAfterSeconds),
});

const description = (spec: IndexSpec): IndexDescription & { name: string; key: Record<string, 1 | -1> } => ({
  name: indexName(spec),
  key: { ...spec.fields },
  ...(spec.unique ? { unique: true } : {}),
  ...(spec.partial ? { partialFilterExpression: spec.partial } : {}),
  ...(spec.expireAfterSeconds === undefined ? {} : { expireAfterSeconds: spec.expireAfterSeconds }),
});

const dropIndex = async <Doc extends Document>(collection: Collection<Doc>, name: string): Promise<void> => {
  try {
    await collection.dropIndex(name);
  } catch (error) {
    // Another replica was quicker.
    if (!(error instanceof MongoServerError && error.code === indexNotFound)) throw error;
  }
};

/**
 * Creates missing indexes, then drops those named in `retired`. It drops no other: an older version that still runs may need them.
 * @throws Error when an index of that name exists with another definition: give the new one another purpose.
 */
export const ensureIndexes = async <Doc extends Document>(
  collection: Collection<Doc>,
  indexes: readonly IndexSpec[],
  retired: readonly string[] = [],
): Promise<void> => {
  const wanted = indexes.map(description);
  const there = new Map((await stored(collection as unknown as Collection<never>)).map((index) => [index.name, index]));
  for (const index of wanted) {
    const existing = there.get(index.name);
    if (existing && !isDeepStrictEqual(essence(existing), essence(index)))
      throw new Error(
        `the index ${collection.collectionName}.${index.name} has another definition in the database: ` +
          `${JSON.stringify(essence(existing))} instead of ${JSON.stringify(essence(index))}; ` +
          "give the new one another purpose, so that both can be there during an update",
      );
  }
  const missing = wanted.filter((index) => !there.has(index.name));
  if (missing.length > 0) await collection.createIndexes(missing, build);
  for (const name of retired) if (there.has(name)) await dropIndex(collection, name);
};
