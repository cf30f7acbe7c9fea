import { randomBytes } from "node:crypto";
import { MongoClient } from "mongodb";
import { inject } from "vitest";

export type FreshDatabase = Awaited<ReturnType<typeof freshDatabase>>;

type Options = {
  /** By default this run's server. */
  readonly url?: string | undefined;
  /** The same for the databases of one system; by default a new one. */
  readonly prefix?: string;
  /** Whose database it is. */
  readonly service?: string;
};

/** A new database for one test. A file may create several. */
export async function freshDatabase({
  url = inject("heraldMongoUrl"),
  prefix = `test_${randomBytes(8).toString("hex")}`,
  service = "store",
}: Options = {}) {
  const name = `${prefix}_${service}`;
  const client = await new MongoClient(url).connect();
  return {
    /** The server's URL, without the database's name. */
    url,
    /** `HERALD_DATABASE_PREFIX` of the service that uses it. */
    prefix,
    name,
    client,
    /** Removes the database and closes the client. */
    drop: async () => {
      await client.db(name).dropDatabase();
      await client.close();
    },
  };
}
