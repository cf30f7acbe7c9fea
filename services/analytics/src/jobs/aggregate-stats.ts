import { randomUUID } from "node:crypto";
import { type Logger, type PeriodicTask, runEvery } from "@herald/kit";
import { aggregateDeltas } from "../domain/aggregate.ts";
import type { StatsDelta } from "../domain/stats-delta.ts";
import type { RollupStore } from "../stores/rollup-store.ts";
import type { AggregationRun, StatsDeltaStore } from "../stores/stats-delta-store.ts";
import type { TagValueStore } from "../stores/tag-value-store.ts";

/** Statistics are a second behind under load; a run takes a fraction of a second. */
const everyMs = 1_000;
/** After this time another process completes the run in progress. If both processes complete it, the result is the same. */
const runTimeoutMs = 4_000;
/** A document has the deltas of up to 1,000 events of one project; events of 500 projects are 500 documents. */
const page = 500;
/** A run writes about as many rollups, in less than a second. A document with more increments is aggregated alone. */
const maxIncrements = 2_000;

/** `documents`: how many were aggregated. `more`: others remain. */
type Result = { readonly documents: number; readonly more: boolean };
const nothing: Result = { documents: 0, more: false };

type Stores = { readonly deltas: StatsDeltaStore; readonly rollups: RollupStore; readonly tagValues: TagValueStore };

/** In place of the scopes of tags, which are not read for deltas without tags. */
const noTags = (): never => {
  throw new Error("the scope of a tag was asked for, and no delta has one");
};

/** Adds stored deltas to the rollups, each once, even if a process is killed at any point. Resolves when one run is complete. */
export const createAggregate = ({ deltas, rollups, tagValues }: Stores) => {
  const by = randomUUID();
  const complete = async ({ number, deltas: ids }: Pick<AggregationRun, "number" | "deltas">): Promise<void> => {
    const found = await deltas.get(ids);
    const tagged = found.some(({ increments }) => increments.some(({ tags }) => tags !== undefined));
    await rollups.add(number, aggregateDeltas(found, tagged ? await tagValues.scopesOf(found) : noTags));
    await deltas.markAggregated(ids);
    await deltas.endRun(number);
  };
  return async (): Promise<Result> => {
    // Read before the deltas, so that no run up to this one contains the deltas found below.
    const last = await deltas.lastRun();
    if (!last.done) {
      if (last.by !== by && Date.now() - last.at.getTime() < runTimeoutMs) return nothing;
      await complete(last);
      return { documents: last.deltas.length, more: true };
    }
    const found = await deltas.findNotAggregated(page);
    let increments = 0;
    const ids = found.flatMap(({ _id, size }, index) => {
      increments += size;
      return index === 0 || increments <= maxIncrements ? [_id] : [];
    });
    if (ids.length === 0 || !(await deltas.beginRun(last, { deltas: ids, by, at: new Date() }))) return nothing;
    await complete({ number: last.number + 1, deltas: ids });
    return { documents: ids.length, more: ids.length < found.length || found.length === page };
  };
};

export type StoreDeltas = (batch: readonly StatsDelta[]) => Promise<void>;

/**
 * A run costs eight commands, however few deltas it has. So `store` starts a run at once only if none ran for a second; otherwise
 * the next run takes all deltas of that second. The job also finds deltas that other processes stored and left.
 */
export const createAggregation = (stores: Stores, log: Logger) => {
  const aggregate = createAggregate(stores);
  let lastRunAt = Number.NEGATIVE_INFINITY;
  let job: PeriodicTask | undefined;
  const store: StoreDeltas = async (batch) => {
    if (batch.length === 0) return;
    await stores.deltas.put(batch);
    if (performance.now() - lastRunAt > everyMs) job?.runNow();
  };
  const begin = (): PeriodicTask => {
    job = runEvery("aggregate statistics", everyMs, log, async (signal) => {
      for (let more = true; more && !signal.aborted; ) {
        const result = await aggregate();
        if (result.documents > 0) lastRunAt = performance.now();
        more = result.more;
      }
    });
    return job;
  };
  return { store, begin };
};
