import { currentDeadline, LRUCache, runWithDeadline } from "@herald/kit";
import type { Collection, Document, Filter } from "mongodb";

/** The time limit of a background read: longer than counting the largest set takes, and ends a stuck read. */
const unawaitedMs = 55_000;

/**
 * Options of a read whose cost grows with the stored data: the server stops it when the caller no longer waits. Not for reads that
 * several callers share.
 */
export const deadlineOptions = (): { maxTimeMS: number } => ({
  maxTimeMS: Math.max(1, Math.ceil(currentDeadline()?.remainingMs() ?? unawaitedMs)),
});

/** Below this, counts are exact and cost a few milliseconds; from here on they may be cached. */
const exactBelow = 10_000;
/** Maximum age of a cached count, unless the count took long. */
const oldestMs = 10_000;
/** A count that took long is kept for this many times its duration, so that counting, seconds for a million rows, stays a small load. */
const timesItTook = 20;
/** From this part of its maximum age on, a count is refreshed in the background, so that the next page need not wait. */
const refreshPart = 0.5;
/** How many counts are cached: about 200 bytes each. */
const maxRemembered = 1_000;

type Remembered = { readonly count: number; readonly at: number; readonly maxAge: number };

type CountRequest<Doc extends Document> = {
  readonly collection: Collection<Doc>;
  readonly filter: Filter<Doc>;
  /** Name of the index that serves the filter. */
  readonly hint: string;
};

/** Counts rows: exactly below 10,000; above, the count is at most as old as 10 s or 20 times its duration. */
export type Counts = {
  count<Doc extends Document>(request: CountRequest<Doc>): Promise<number>;
};

/** Caches the counts of large sets and evicts the least recently used. Each store has one. */
export const createCounts = (now: () => number = Date.now): Counts => {
  const remembered = new LRUCache<string, Remembered>({ max: maxRemembered });
  const running = new Map<string, Promise<number>>();

  /** Not shared: the count of a small set must include what its caller just wrote. Undefined when the set is not small. */
  const countSmall = async <Doc extends Document>({ collection, filter, hint }: CountRequest<Doc>) => {
    const count = await collection.countDocuments(filter, { hint, limit: exactBelow, ...deadlineOptions() });
    return count < exactBelow ? count : undefined;
  };

  const countLarge = async <Doc extends Document>(key: string, { collection, filter, hint }: CountRequest<Doc>) => {
    const at = now();
    const count = await collection.countDocuments(filter, { hint, ...deadlineOptions() });
    if (count >= exactBelow) remembered.set(key, { count, at, maxAge: Math.max(oldestMs, timesItTook * (now() - at)) });
    else remembered.delete(key);
    return count;
  };

  /** One shared count of a large set at a time. It continues if one of its callers gives up. */
  const recount = <Doc extends Document>(key: string, request: CountRequest<Doc>) => {
    const underWay =
      running.get(key) ?? runWithDeadline(undefined, () => countLarge(key, request)).finally(() => running.delete(key));
    running.set(key, underWay);
    return underWay;
  };

  return {
    count: async (request) => {
      const key = `${request.collection.namespace} ${JSON.stringify(request.filter)}`;
      const known = remembered.get(key);
      if (!known) return (await countSmall(request)) ?? recount(key, request);
      const age = now() - known.at;
      if (age >= known.maxAge) return recount(key, request);
      // A failed refresh keeps the old count. Once the old count has expired, the next caller gets the error.
      if (age >= refreshPart * known.maxAge) recount(key, request).catch(() => undefined);
      return known.count;
    },
  };
};
