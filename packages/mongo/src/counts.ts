import type { Collection, Document, Filter } from "mongodb";

/** Below, counts are exact; from here on they may be a little old. Counting so many costs a few milliseconds. */
const exactBelow = 10_000;
/** Oldest count that is answered. */
const oldestMs = 10_000;
/** From this age on it is counted anew in the background, so that whoever pages on need not wait. */
const refreshMs = 5_000;
/** Large sets whose counts are remembered: about 200 bytes each. */
const mostRemembered = 1_000;

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

/** Remembers the counts of large sets, the least recently asked for go first. One for a store is enough. */
export const createCounts = (now: () => number = Date.now): Counts => {
  const remembered = new Map<string, Remembered>();
  const running = new Map<string, Promise<number>>();

  const remember = (key: string, value: Remembered) => {
    remembered.delete(key);
    remembered.set(key, value);
    if (remembered.size <= mostRemembered) return;
    const [oldest] = remembered.keys();
    if (oldest !== undefined) remembered.delete(oldest);
  };

  /** Whoever asks while it is being counted gets the same answer, which is not older than 10 s by then. */
  const countAll = <Doc extends Document>(key: string, { collection, filter, hint }: CountRequest<Doc>) => {
    const underWay = running.get(key);
    if (underWay) return underWay;
    const at = now();
    const counting = collection
      .countDocuments(filter, { hint })
      .then((count) => {
        if (count >= exactBelow) remember(key, { count, at });
        else remembered.delete(key);
        return count;
      })
      .finally(() => running.delete(key));
    running.set(key, counting);
    return counting;
  };

  return {
    count: async (request) => {
      const { collection, filter, hint } = request;
      const key = `${collection.namespace} ${JSON.stringify(filter)}`;
      const known = remembered.get(key);
      if (known) {
        const age = now() - known.at;
        if (age < oldestMs) {
          remember(key, known);
          // A refresh that fails leaves the old count to age; whoever asks then learns why.
          if (age >= refreshMs) countAll(key, request).catch(() => undefined);
          return known.count;
        }
        return countAll(key, request);
      }
      const few = await collection.countDocuments(filter, { hint, limit: exactBelow });
      return few < exactBelow ? few : countAll(key, request);
    },
  };
};
