import { setTimeout as sleep } from "node:timers/promises";
import { idTime } from "@herald/contracts";
import { type MongoHandle, readRetentionMark } from "@herald/mongo";
import { aggregateDeltas } from "../domain/aggregate.ts";
import { unitMs } from "../domain/intervals.ts";
import { type Increment, isInTotal } from "../domain/stats-delta.ts";
import { createAggregate } from "../jobs/aggregate-stats.ts";
import type { Stores } from "../stores/create-stores.ts";

/** Increments that are summed in memory at a time: a few kilobytes each, with the rollups that they change. */
const maxIncrements = 10_000;
/** A run that a killed process left can be completed after four seconds. */
const waitMs = 500;

/** Drops the parts of an increment whose rollups are not rebuilt, because retention has removed some of their deltas. */
const clip = (increment: Increment, since: Date): Increment[] => {
  const inHours = increment.slot >= since;
  const inTotal = idTime(increment.notificationId) >= since;
  if (increment.only === "total") return inTotal ? [increment] : [];
  if (increment.only !== undefined || !increment.adds.some(([path]) => isInTotal(path)))
    return inHours ? [increment] : [];
  if (inHours && inTotal) return [increment];
  return inHours ? [{ ...increment, only: "hours" }] : inTotal ? [{ ...increment, only: "total" }] : [];
};

/**
 * Sums all stored deltas again, and replaces every rollup whose deltas are all still stored. No analytics may run meanwhile. After an
 * interruption, statistics are incomplete until it runs again; it then continues.
 * @throws Error when analytics is running.
 */
export const rebuildStatistics = async (
  db: MongoHandle["db"],
  { deltas, rollups, tagValues }: Stores,
  progress: (message: string) => void,
): Promise<void> => {
  // Waiting deltas are aggregated first: figures that are not rebuilt must include them too.
  const aggregate = createAggregate({ deltas, rollups, tagValues });
  for (let waiting = true; waiting; ) {
    const { documents } = await aggregate();
    waiting = documents > 0 || !(await deltas.lastRun()).done;
    if (documents === 0 && waiting) await sleep(waitMs);
  }

  let { number, rebuild } = await deltas.lastRun();
  if (rebuild === undefined) {
    // Retention has removed no deltas of later quarters. Rollups cover up to a day, so the rebuild starts with the next whole day.
    const mark = await readRetentionMark(db, "statsDeltas");
    rebuild = { since: new Date(Math.ceil((mark?.getTime() ?? 0) / unitMs.day) * unitMs.day), after: "" };
    await rollups.clear(rebuild.since);
    await deltas.advanceRebuild(number++, rebuild);
    progress(`the figures since ${rebuild.since.toISOString()} are empty`);
  } else progress(`continues after ${rebuild.after}`);

  const { since } = rebuild;
  let counted = 0;
  for (let { after } = rebuild; ; ) {
    const { deltas: found, last } = await deltas.pageAfter(after, maxIncrements);
    if (last === undefined) break;
    const page = found.map(({ projectId, increments }) => ({
      projectId,
      increments: increments.flatMap((increment) => clip(increment, since)),
    }));
    // After a kill between these two writes, the page is repeated under the same number, and no rollup takes it twice.
    await rollups.add(number + 1, aggregateDeltas(page, await tagValues.scopesOf(page)));
    await deltas.advanceRebuild(number++, { since, after: last });
    after = last;
    counted += found.length;
  }
  await deltas.advanceRebuild(number, undefined);
  progress(`${counted} documents of deltas are counted`);
};
