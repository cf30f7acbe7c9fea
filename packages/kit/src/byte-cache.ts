import { LRUCache } from "lru-cache";
import { meter } from "./telemetry/spans.ts";

/** An entry's memory beside its value: the key and the cache's own lists. */
const entryBytes = 256;

/**
 * A cache for content that clients sent, therefore bounded in bytes: evicts the least recently used values, and does not store a value
 * larger than the whole cache. Its metrics are its current and its maximum bytes.
 */
export const createByteCache = <Key extends string, Value extends object>({
  name,
  maxBytes,
  sizeOf,
  ...refresh
}: {
  /** The label of its metrics. */
  readonly name: string;
  readonly maxBytes: number;
  /** The size of a value in memory. */
  readonly sizeOf: (value: Value) => number;
  /** The milliseconds after which `fetch` reads a value again. */
  readonly ttl?: number;
  /** Reads a value for `fetch`, once for all who wait. `known` is the earlier one. */
  readonly fetchMethod?: (key: Key, known: Value | undefined) => Promise<Value | undefined>;
}) => {
  const cache = new LRUCache<Key, Value>({
    ...refresh,
    // Who waits for a value gets it, also if others took its place meanwhile.
    ignoreFetchAbort: true,
    maxSize: maxBytes,
    sizeCalculation: (value) => sizeOf(value) + entryBytes,
  });
  const gauge = (metric: string, description: string, bytes: () => number) =>
    meter()
      .createObservableGauge(metric, { description })
      .addCallback((result) => result.observe(bytes(), { cache: name }));
  gauge("herald.cache.bytes", "What a cache of contents holds, by cache", () => cache.calculatedSize);
  gauge("herald.cache.limit.bytes", "What a cache of contents may hold, by cache", () => maxBytes);
  return cache;
};

/** Memory of V8 on a 64-bit machine, rounded up: an object with its first fields, one more field, a string, a number. */
const cost = { object: 64, field: 32, text: 24, scalar: 24 } as const;

/**
 * The approximate memory of a JSON value, in bytes: several times its text if it has many small fields. Does not recurse, because a client
 * may choose the value's depth.
 */
export const memoryBytesOf = (value: unknown): number => {
  let bytes = 0;
  const left: unknown[] = [value];
  for (let next = left.pop(); next !== undefined; next = left.pop()) {
    if (typeof next === "string") bytes += cost.text + 2 * next.length;
    else if (typeof next !== "object" || next === null) bytes += cost.scalar;
    else {
      bytes += cost.object;
      for (const [key, inner] of Object.entries(next)) {
        bytes += cost.field + 2 * key.length;
        if (inner !== undefined) left.push(inner);
      }
    }
  }
  return bytes;
};
