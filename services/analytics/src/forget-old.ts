import { type Logger, type Repeating, repeat } from "@herald/kit";
import type { ContributionStore } from "./stores/contribution-store.ts";
import type { HorizonStore } from "./stores/horizon-store.ts";
import type { OpenStore } from "./stores/open-store.ts";

/** Retention is counted in days; a run without anything to remove is one query a project. */
const everyMs = 3_600_000;
/** An open is never there longer than the report that counted it, whose time is the quarter of an hour that it is in. */
const marginMs = 3_600_000;

type Stores = { readonly opens: OpenStore; readonly contributions: ContributionStore; readonly horizon: HorizonStore };

/** Removes opens and contributions from before a time. Figures that they went into stay. */
export const removeBefore = async ({ opens, contributions, horizon }: Stores, before: Date, signal: AbortSignal) => {
  await horizon.advance(before);
  let projectId = await opens.removeOld(undefined, before);
  while (projectId !== undefined && !signal.aborted) projectId = await opens.removeOld(projectId, before);
  while (!signal.aborted && (await contributions.removeOld(new Date(before.getTime() - marginMs))));
};

/** Removes what is older than the retention, every hour. Any number of processes may. */
export const keepForgetting = (stores: Stores, retentionMs: number, log: Logger, now: () => Date): Repeating =>
  repeat("remove old opens", everyMs, log, (signal) =>
    removeBefore(stores, new Date(now().getTime() - retentionMs), signal),
  );
