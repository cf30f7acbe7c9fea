import { withinDeadline } from "@herald/kit";
import type { Collection, Document, Filter } from "mongodb";
import { deadlineOptions } from "./deadline-options.ts";

/** Below this, counts are exact and cost a few milliseconds; from here on they may be cached. */
const exactBelow = 10_000;
/** Maximum age of a cached count. */
const oldestMs = 10_000;
/** From this age on a count is refreshed in the background, so that the next page need not wait. */
const refreshMs = 5_000;
/** How many counts are cached: about 200 bytes each. */
const maxRemembered = 1_000;

type Remembered = { count: number; at: number };

type CountRequest<Doc extends Document> = {
  readonly collection: Collection<Doc>;
  readonly filter: Filter<Doc>;
  /** Name of the index that serves the filter. */
  readonly hint: string;
};

/** Counts rows: exactly below 10,000, at most 10 s old above. */
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
    if (count >= exactBelow) remember(key, { count, at });
    else remembered.delete(key);
    return count;
  };

  /** One shared count of a large set at a time. It is at most 10 s old, and continues when one of its callers gives up. */
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
      if (age >= oldestMs) return recount(key, request);
      remember(key, known);
      // A failed refresh keeps the old count. Once that has expired, the next caller gets the error.
      if (age >= refreshMs) recount(key, request).catch(() => undefined);
      return known.count;
    },
  };
};
