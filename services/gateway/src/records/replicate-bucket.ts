import { type Bucket, type Bus, openBucket } from "@herald/bus";
import type { BucketName } from "@herald/contracts";
import type { z } from "zod";

/** A bucket replicated into memory by a watch. */
export type BucketReplica<Value> = {
  readonly get: (key: string) => Value | undefined;
  /**
   * Reads one key from the bus when memory does not have it, so that a record works as soon as it is written. `permit` may refuse.
   * Throws bus-unavailable.
   */
  readonly fetch: (key: string, permit: () => Promise<void>) => Promise<Value | undefined>;
  /** True when all records were received and the connection is up. */
  readonly ready: () => boolean;
  /** Starts the watch. */
  readonly start: (bus: Bus) => void;
  readonly stop: () => Promise<void>;
};

/** Replicates a bucket. Empty until started, while `bus` throws bus-unavailable. */
export const replicateBucket = <Schema extends z.ZodType>(
  name: BucketName,
  schema: Schema,
  bus: () => Bus,
): BucketReplica<z.output<Schema>> => {
  type Value = z.output<Schema>;
  const known = new Map<string, Value>();
  let watching: ReturnType<Bucket<Value>["watch"]> | undefined;
  return {
    get: (key) => known.get(key),
    fetch: async (key, permit) => {
      const bucket = openBucket(bus(), name, schema);
      await permit();
      return (await bucket.get(key))?.value;
    },
    ready: () => watching?.ready() ?? false,
    start: (connected) => {
      watching = openBucket(connected, name, schema).watch(({ key, value }) => {
        if (value === undefined) known.delete(key);
        else known.set(key, value);
      });
    },
    stop: async () => watching?.stop(),
  };
};
