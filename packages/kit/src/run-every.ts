import { hasCode } from "./herald-error.ts";
import type { Logger } from "./logger.ts";

/** A task that runs again and again. */
export type PeriodicTask = {
  /** Runs the task now instead of at its next time. Does nothing while it runs. */
  runNow(): void;
  /** Aborts the task's signal and waits for the task. */
  stop(): Promise<void>;
};

/**
 * Runs a task now, and again `everyMs` after each end. A failure is logged, at debug level while a dependency is unavailable, and the task
 * runs again. Stopping aborts the task's signal and waits for the task.
 */
export const runEvery = (
  what: string,
  everyMs: number,
  log: Logger,
  task: (signal: AbortSignal) => Promise<unknown>,
): PeriodicTask => {
  const stopping = new AbortController();
  const { signal } = stopping;
  let timer: NodeJS.Timeout | undefined;

  const run = async () => {
    try {
      await task(signal);
    } catch (err) {
      const unavailable = hasCode(err, "bus-unavailable", "database-unavailable", "service-unavailable");
      if (!signal.aborted) log[unavailable ? "debug" : "error"]({ err, what }, "a task in the background failed");
    }
    if (!signal.aborted) timer = setTimeout(begin, everyMs);
  };
  const begin = () => {
    timer = undefined;
    running = run();
  };
  let running = run();

  return {
    runNow: () => {
      if (timer === undefined || signal.aborted) return;
      clearTimeout(timer);
      begin();
    },
    stop: async () => {
      stopping.abort();
      clearTimeout(timer);
      await running;
    },
  };
};
