import { randomBytes } from "node:crypto";
import { MongoClient } from "mongodb";
import { inject } from "vitest";

export type FreshDatabase = {
  /** The server's URL, without the database's name. */
  readonly url: string;
  /** `HERALD_DATABASE_PREFIX` of the service that uses it. */
  readonly prefix: string;
  readonly name: string;
  readonly client: MongoClient;
  /** Removes the database and closes the client. */
  readonly drop: () => Promise<void>;
};

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
}: Options = {}): Promise<FreshDatabase> {
  const name = `${prefix}_${service}`;
  const client = await new MongoClient(url).connect();
  return {
    url,
    prefix,
    name,
    client,
    drop: async () => {
      await client.db(name).dropDatabase();
      await client.close();
    },
  };
}
