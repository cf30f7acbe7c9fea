import { randomBytes } from "node:crypto";
import { MongoClient } from "mongodb";
import { inject } from "vitest";

export type FreshDatabase = Awaited<ReturnType<typeof freshDatabase>>;

/** A new database for one test, by default on this run's server. A file may create several. */
export async function freshDatabase(url = inject("heraldMongoUrl")) {
  const name = `test_${randomBytes(8).toString("hex")}`;
  const client = await new MongoClient(url).connect();
  return {
    /** The server's URL, without the database's name. */
    url,
    name,
    client,
    /** Removes the database and closes the client. */
    drop: async () => {
      await client.db(name).dropDatabase();
      await client.close();
    },
  };
}
