import { MongoClient } from "mongodb";

/** True when the database answers; throws why it does not. */
export async function ping(url: string): Promise<true> {
  const client = new MongoClient(url, { serverSelectionTimeoutMS: 1_000, directConnection: true });
  try {
    await client.db("admin").command({ ping: 1 });
    return true;
  } finally {
    await client.close();
  }
}
