import { HeraldError } from "./herald-error.ts";
import type { Logger } from "./logger.ts";

export type Repeating = {
  /** Runs the task now instead of at its time. Does nothing while it runs. */
  readonly runNow: () => void;
  readonly stop: () => Promise<void>;
};

/**
 * Runs a task now and then again and again, `everyMs` after its end. A task that fails is logged and runs the next time; while
 * something is unavailable it fails quietly. Stopping aborts its signal and waits for it.
 */
export const repeat = (
  what: string,
  everyMs: number,
  log: Logger,
  task: (signal: AbortSignal) => Promise<unknown>,
): Repeating => {
  const stopping = new AbortController();
  const { signal } = stopping;
  let timer: NodeJS.Timeout | undefined;

  const run = async () => {
    try {
      await task(signal);
    } catch (err) {
      const unavailable = err instanceof HeraldError && err.code.endsWith("-unavailable");
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
