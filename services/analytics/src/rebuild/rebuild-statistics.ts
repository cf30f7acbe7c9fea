import { idTime } from "@herald/contracts";
import { type Increment, openIncrements, type StatsDelta } from "../domain/stats-delta.ts";
import type { createAggregate } from "../jobs/aggregate-stats.ts";
import type { Stores } from "../stores/create-stores.ts";

/** Opens that are counted in one delta. */
const page = 1_000;

const hourMs = 3_600_000;
const nextHour = (at: Date): Date => new Date(Math.ceil(at.getTime() / hourMs) * hourMs);

/** Figures of removed rows stay as they are: hours before `hour`, totals of notifications from before `since`. */
const clipToMark = (increment: Increment, since: Date, hour: Date): Increment[] => {
  const inHours = increment.slot >= hour;
  const inTotal = idTime(increment.notificationId) >= since;
  if (inHours && inTotal) return [increment];
  return inHours ? [{ ...increment, only: "hours" }] : inTotal ? [{ ...increment, only: "total" }] : [];
};

/**
 * Replaces every rollup whose opens and deltas are all still stored. No analytics may run meanwhile. After an interruption statistics
 * are incomplete: run it again. `retentionMark`: retention has removed no opens or deltas since then; undefined: never.
 */
export const rebuildStatistics = async (
  { opens, deltas, rollups, notificationFacts }: Stores,
  retentionMark: Date | undefined,
  aggregate: ReturnType<typeof createAggregate>,
  progress: (message: string) => void,
): Promise<void> => {
  // Ends a run that a crash left: its deltas are counted below, and its number must not be used again.
  while (!(await deltas.lastRun()).done) await deltas.endRun((await deltas.lastRun()).number);
  const since = retentionMark ?? new Date(0);
  const hour = nextHour(since);
  await rollups.clear(hour, since);
  await deltas.reset(hour);
  progress(`the rollups since ${since.toISOString()} are empty`);

  let after = "";
  let counted = 0;
  for (;;) {
    const rows = await opens.pageAfter(after, page);
    const last = rows.at(-1);
    if (last === undefined) break;
    const sendTimes = await notificationFacts.sendTimes(rows.map(({ notificationId }) => notificationId));
    const ofProjects = Map.groupBy(rows, ({ projectId }) => projectId);
    const made: StatsDelta[] = [];
    for (const [projectId, all] of ofProjects) {
      const reports = [...new Set(all.map(({ report }) => report))];
      const known = await deltas.known(projectId, reports);
      // An open whose report is not counted yet is in a message that will be delivered again, and counts then.
      const settled = all.filter(({ report }) => known.has(report));
      counted += settled.length;
      const increments = openIncrements(settled, sendTimes).flatMap((increment) => clipToMark(increment, since, hour));
      if (increments.length > 0) made.push({ _id: `rebuild/${last._id}`, projectId, kind: "rebuild", increments });
    }
    await deltas.put(made);
    after = last._id;
  }
  progress(`${counted} opens are read`);

  let aggregated = 0;
  for (let more = (await aggregate()).documents; more > 0; more = (await aggregate()).documents) aggregated += more;
  progress(`${aggregated} deltas are in the rollups`);
};
