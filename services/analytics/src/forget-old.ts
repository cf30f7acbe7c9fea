import type { Logger } from "@herald/kit";
import type { ContributionStore } from "./stores/contribution-store.ts";
import type { HorizonStore } from "./stores/horizon-store.ts";
import type { OpenStore } from "./stores/open-store.ts";

/** Retention is counted in days; a run without anything to remove is one query a project. */
const everyMs = 3_600_000;
/** An open is never there longer than the report that counted it, whose time is the quarter of an hour that it is in. */
const marginMs = 3_600_000;

type Stores = { readonly opens: OpenStore; readonly contributions: ContributionStore; readonly horizon: HorizonStore };

/** Removes opens and contributions from before a time. Figures that they went into stay. */
export const removeBefore = async ({ opens, contributions, horizon }: Stores, before: Date, stop: () => boolean) => {
  await horizon.advance(before);
  let projectId = await opens.removeOld(undefined, before);
  while (projectId !== undefined && !stop()) projectId = await opens.removeOld(projectId, before);
  while (!stop() && (await contributions.removeOld(new Date(before.getTime() - marginMs))));
};

/** Removes what is older than the retention, every hour. Any number of processes may. */
export const keepForgetting = (stores: Stores, retentionMs: number, log: Logger, now: () => Date) => {
  let running: Promise<void> | undefined;
  let stopping = false;
  const timer = setInterval(() => {
    running ??= removeBefore(stores, new Date(now().getTime() - retentionMs), () => stopping)
      .catch((error: unknown) => log.warn({ err: error }, "old opens will be removed later"))
      .finally(() => {
        running = undefined;
      });
  }, everyMs);
  timer.unref();
  return {
    stop: async (): Promise<void> => {
      stopping = true;
      clearInterval(timer);
      await running;
    },
  };
};
