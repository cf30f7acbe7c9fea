import { LRUCache } from "lru-cache";
import { meter } from "./telemetry/spans.ts";

export type ByteCache<Key extends string, Value extends object> = {
  /** The value, which counts as used just now. */
  readonly get: (key: Key) => Value | undefined;
  /** The value; how it counts stays. */
  readonly peek: (key: Key) => Value | undefined;
  /** Keeps a value, at the cost of what was used longest ago. One that is larger than the whole cache is not kept. */
  readonly set: (key: Key, value: Value) => void;
  readonly delete: (key: Key) => void;
  readonly bytes: () => number;
};

export type ByteCacheOptions<Value> = {
  /** The label of its metrics. */
  readonly name: string;
  readonly maxBytes: number;
  /** What a value takes in memory. */
  readonly sizeOf: (value: Value) => number;
};

/** Beside a value: its key and the cache's own lists. */
const entryBytes = 256;

/** A cache of what strangers wrote, which is therefore bounded in bytes. Its metrics are the bytes that it holds and may hold. */
export const createByteCache = <Key extends string, Value extends object>({
  name,
  maxBytes,
  sizeOf,
}: ByteCacheOptions<Value>): ByteCache<Key, Value> => {
  const cache = new LRUCache<Key, Value>({
    maxSize: maxBytes,
    sizeCalculation: (value) => sizeOf(value) + entryBytes,
  });
  const held = meter().createObservableGauge("herald.cache.bytes", {
    description: "What a cache of contents holds, by cache",
  });
  const limit = meter().createObservableGauge("herald.cache.limit.bytes", {
    description: "What a cache of contents may hold, by cache",
  });
  held.addCallback((result) => result.observe(cache.calculatedSize, { cache: name }));
  limit.addCallback((result) => result.observe(maxBytes, { cache: name }));
  return {
    get: (key) => cache.get(key),
    peek: (key) => cache.peek(key),
    set: (key, value) => void cache.set(key, value),
    delete: (key) => void cache.delete(key),
    bytes: () => cache.calculatedSize,
  };
};
