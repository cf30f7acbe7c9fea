import { randomBytes } from "node:crypto";
import { MongoClient } from "mongodb";
import { inject } from "vitest";

export type FreshDatabase = {
  /** The server, without the database's name. */
  url: string;
  name: string;
  client: MongoClient;
  /** Removes the database and closes the client. */
  drop: () => Promise<void>;
};

/** A new database for one test, on the server of this run unless another is named. One file may ask for several. */
export async function freshDatabase(url = inject("heraldMongoUrl")): Promise<FreshDatabase> {
  const name = `test_${randomBytes(8).toString("hex")}`;
  const client = await new MongoClient(url).connect();
  return {
    url,
    name,
    client,
    drop: async () => {
      await client.db(name).dropDatabase();
      await client.close();
    },
  };
}
