import { isDeepStrictEqual } from "node:util";
import type { Bucket } from "@herald/bus";

/** Only a handful of processes write one key at the same time, and one of them succeeds in each round. */
const maxRounds = 20;

/**
 * Writes what the database says into an entry of a bucket; undefined deletes it. Reads the entry's revision before the database, and
 * writes only onto that revision: the last writer has seen every earlier change of the database.
 */
export const replicateEntry = async <Value>(
  bucket: Bucket<Value>,
  key: string,
  read: () => Promise<Value | undefined>,
): Promise<void> => {
  for (let round = 0; round < maxRounds; round++) {
    const entry = await bucket.get(key);
    const value = await read();
    if (isDeepStrictEqual(entry?.value, value)) return;
    if (value === undefined) await bucket.delete(key);
    else if (entry === undefined) await bucket.create(key, value);
    else await bucket.update(key, value, entry.revision);
  }
  throw new Error(`the entry ${key} changes too often`);
};

/** The content of a bucket. Waits while the bus is unavailable; throws when the signal is aborted. */
export const readBucket = async <Value>(
  bucket: Bucket<Value>,
  keys: string,
  signal: AbortSignal,
): Promise<Map<string, Value>> => {
  const found = new Map<string, Value>();
  const { promise, resolve } = Promise.withResolvers<void>();
  signal.addEventListener("abort", () => resolve());
  const watching = bucket.watch(
    ({ key, value }) => {
      if (value === undefined) found.delete(key);
      else found.set(key, value);
    },
    resolve,
    { keys },
  );
  await promise;
  await watching.stop();
  signal.throwIfAborted();
  return found;
};
