import { withinDeadline } from "@herald/kit";
import type { Collection, Document, Filter } from "mongodb";
import { deadlineOptions } from "./deadline-options.ts";

/** Below this, counts are exact and cost a few milliseconds; from here on they may be cached. */
const exactBelow = 10_000;
/** Maximum age of a cached count, which is longer where the count itself took long. */
const oldestMs = 10_000;
/** It is kept for so many times as long as it took: counting a million rows takes seconds, and must not be all that the database does. */
const timesItTook = 20;
/** From this part of its age on a count is refreshed in the background, so that the next page need not wait. */
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

/** Counts rows: exactly below 10,000; above at most 10 s old, or 20 times as old as it took to count them. */
export type Counts = {
  readonly count: <Doc extends Document>(request: CountRequest<Doc>) => Promise<number>;
};

/** Caches the counts of large sets and evicts the least recently used. One for each store. */
export const createCounts = (now: () => number = Date.now): Counts => {
  const remembered = new Map<string, Remembered>();
  const running = new Map<string, Promise<number>>();

  const remember = (key: string, value: Remembered) => {
    remembered.delete(key);
    remembered.set(key, value);
    if (remembered.size <= maxRemembered) return;
    const [oldest] = remembered.keys();
    if (oldest !== undefined) remembered.delete(oldest);
  };

  /** Not shared: the count of a small set must include what its caller just wrote. Undefined when the set is not small. */
  const countSmall = async <Doc extends Document>({ collection, filter, hint }: CountRequest<Doc>) => {
    const count = await collection.countDocuments(filter, { hint, limit: exactBelow, ...deadlineOptions() });
    return count < exactBelow ? count : undefined;
  };

  const countLarge = async <Doc extends Document>(key: string, { collection, filter, hint }: CountRequest<Doc>) => {
    const at = now();
    const count = await collection.countDocuments(filter, { hint, ...deadlineOptions() });
    if (count >= exactBelow) remember(key, { count, at, maxAge: Math.max(oldestMs, timesItTook * (now() - at)) });
    else remembered.delete(key);
    return count;
  };

  /** One shared count of a large set at a time. It continues when one of its callers gives up. */
  const recount = <Doc extends Document>(key: string, request: CountRequest<Doc>) => {
    const underWay =
      running.get(key) ?? withinDeadline(undefined, () => countLarge(key, request)).finally(() => running.delete(key));
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
      remember(key, known);
      // A failed refresh keeps the old count. Once that has expired, the next caller gets the error.
      if (age >= refreshPart * known.maxAge) recount(key, request).catch(() => undefined);
      return known.count;
    },
  };
};
