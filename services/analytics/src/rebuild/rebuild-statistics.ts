import { idTime } from "@herald/contracts";
import type { Contribution, Part } from "../domain/stats-delta.ts";
import { openParts } from "../domain/stats-delta.ts";
import type { FoldOnce } from "../jobs/aggregate-stats.ts";
import type { NoticeStore } from "../stores/notification-facts-store.ts";
import type { OpenStore } from "../stores/open-store.ts";
import type { RollupStore } from "../stores/rollup-store.ts";
import type { ContributionStore } from "../stores/stats-delta-store.ts";

/** Opens in one contribution of a rebuild. */
const page = 1_000;

type Stores = {
  readonly opens: OpenStore;
  readonly contributions: ContributionStore;
  readonly rollups: RollupStore;
  readonly notices: NoticeStore;
  /** From when on all opens and contributions are there; undefined: none was ever removed. */
  readonly completeSince: () => Promise<Date | undefined>;
};

const hourMs = 3_600_000;
const nextHour = (at: Date): Date => new Date(Math.ceil(at.getTime() / hourMs) * hourMs);

/** Figures that a removed row may have gone into are left as they are: hours from before `hour`, totals from before `since`. */
const withinHorizon = (part: Part, since: Date, hour: Date): Part[] => {
  const inHours = part.slot >= hour;
  const inTotal = idTime(part.notificationId) >= since;
  if (inHours && inTotal) return [part];
  return inHours ? [{ ...part, only: "hours" }] : inTotal ? [{ ...part, only: "total" }] : [];
};

/**
 * Makes the rollups anew, from the opens and from what delivery events said: every one whose rows are all still there. No analytics
 * may run meanwhile. One that was broken off leaves statistics incomplete, and is run again from its beginning.
 */
export const rebuildStatistics = async (
  { opens, contributions, rollups, notices, completeSince }: Stores,
  foldOnce: FoldOnce,
  progress: (what: string) => void,
): Promise<void> => {
  // A fold that a crash left: its contributions are counted anew below, and its number must not come again.
  while (!(await contributions.fold()).done) await contributions.endFold((await contributions.fold()).number);
  const since = (await completeSince()) ?? new Date(0);
  const hour = nextHour(since);
  await rollups.clear(hour, since);
  await contributions.startOver(hour);
  progress(`the rollups since ${since.toISOString()} are empty`);

  let after = "";
  let counted = 0;
  for (;;) {
    const rows = await opens.scan(after, page);
    const last = rows.at(-1);
    if (last === undefined) break;
    const sendTimes = await notices.sendTimes(rows.map(({ notificationId }) => notificationId));
    const ofProjects = Map.groupBy(rows, ({ projectId }) => projectId);
    const made: Contribution[] = [];
    for (const [projectId, all] of ofProjects) {
      const reports = [...new Set(all.flatMap(({ report }) => report ?? []))];
      const known = await contributions.known(projectId, reports);
      // An open whose report is not counted yet is still in a message that comes again, and is counted then.
      const settled = all.filter(({ report }) => report === undefined || known.has(report));
      counted += settled.length;
      const parts = openParts(settled, sendTimes).flatMap((part) => withinHorizon(part, since, hour));
      if (parts.length > 0) made.push({ _id: `scan/${last._id}`, projectId, kind: "scan", parts });
    }
    await contributions.put(made);
    after = last._id;
  }
  progress(`${counted} opens are read`);

  let folded = 0;
  for (let more = await foldOnce(); more > 0; more = await foldOnce()) folded += more;
  progress(`${folded} contributions are in the rollups`);
};
