import { BSON, type Db, type Document, MongoClient } from "mongodb";
import { storable } from "./storable.ts";

type Database = { readonly url: string; readonly database: string };

/** Documents of one collection: a frame of a backup. The documents are BSON, one behind the other. */
type Page = { readonly collection: string; readonly documents: BSON.Binary };

/** Documents that travel together. */
const pageBytes = 1_048_576;
/** Numbers keep their types: 1 as a double stays a double. */
const exact = { promoteValues: false, promoteLongs: false } as const;

const clientOf = (url: string): MongoClient =>
  new MongoClient(url, { appName: "herald-backup", serverSelectionTimeoutMS: 10_000 });

const withDatabase = async <Result>(
  { url, database }: Database,
  work: (db: Db) => Promise<Result>,
): Promise<Result> => {
  const client = clientOf(url);
  try {
    return await work((await client.connect()).db(database));
  } finally {
    await client.close();
  }
};

const namesOf = async (db: Db): Promise<string[]> => {
  const found = await db.listCollections({}, { nameOnly: true }).toArray();
  return found.map(({ name }) => name).filter((name) => !name.startsWith("system."));
};

/** All documents of a database, in pages. Indexes are left out: a service creates its own when it starts. */
export const dumpDatabase = async function* ({ url, database }: Database): AsyncGenerator<Uint8Array> {
  const client = clientOf(url);
  const page = (collection: string, documents: readonly Uint8Array[]) =>
    BSON.serialize({ collection, documents: new BSON.Binary(Buffer.concat(documents)) } satisfies Page);
  try {
    const db = (await client.connect()).db(database);
    for (const name of await namesOf(db)) {
      let documents: Uint8Array[] = [];
      let bytes = 0;
      for await (const document of db.collection(name).find({}, exact)) {
        const one = BSON.serialize(storable(document) as Document);
        documents.push(one);
        bytes += one.length;
        if (bytes < pageBytes) continue;
        yield page(name, documents);
        documents = [];
        bytes = 0;
      }
      if (documents.length > 0) yield page(name, documents);
    }
  } finally {
    await client.close();
  }
};

const documentsOf = ({ documents }: Page): Document[] => {
  const all: Document[] = [];
  for (let at = 0; at < documents.buffer.length; ) {
    const length = Buffer.from(documents.buffer.buffer, documents.buffer.byteOffset + at).readInt32LE();
    all.push(storable(BSON.deserialize(documents.buffer.subarray(at, at + length), exact)) as Document);
    at += length;
  }
  return all;
};

/**
 * Stores the pages of {@link dumpDatabase}. Resolves to the number of documents.
 * @throws Error in words if the database has documents and `replace` is false.
 */
export const loadDump = (
  target: Database,
  pages: AsyncIterable<Uint8Array>,
  { replace }: { readonly replace: boolean },
): Promise<number> =>
  withDatabase(target, async (db) => {
    for (const name of await namesOf(db)) {
      if (replace) await db.dropCollection(name);
      else if (await db.collection(name).findOne({}, { projection: { _id: 1 } }))
        throw new Error(
          `the database ${target.database} has documents (${name}): restore with --replace to remove them first`,
        );
    }
    let count = 0;
    for await (const bytes of pages) {
      const page = BSON.deserialize(bytes) as Page;
      const documents = documentsOf(page);
      await db.collection(page.collection).insertMany(documents, { ordered: false });
      count += documents.length;
    }
    await restores(db).replaceOne({ _id: "last" }, { at: new Date() }, { upsert: true });
    return count;
  });

const restores = (db: Db) => db.collection<{ _id: "last"; at: Date }>("restores");

/** When this database was last restored from a backup; undefined if it never was. */
export const lastRestore = async (db: Db): Promise<Date | undefined> =>
  (await restores(db).findOne({ _id: "last" }))?.at;
