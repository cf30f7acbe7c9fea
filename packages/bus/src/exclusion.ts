import { createFairGate, withTimeout } from "@herald/kit";
import { createRunning, type Running } from "./permit.ts";

/** Work that runs longer than this, such as the drain of a backlog, is not waited for. */
const maxWaitMs = 1_000;
/** Longer than a process needs to run out of memory over one message, and bearable for the work that waits. */
const maxAloneMs = 10_000;

/** Lets one piece of the work of a process run alone. */
export const createExclusion = (running: Running, { waitMs = maxWaitMs, aloneMs = maxAloneMs } = {}) => ({
  /**
   * Begins after the work that runs, and lets no other begin meanwhile. When it takes long, calls `onLong` and lets others begin.
   */
  alone: async <Result>(work: () => Promise<Result>, onLong: () => void): Promise<Result> => {
    while (running.closed) await running.closed;
    const { promise, resolve } = Promise.withResolvers<void>();
    running.closed = promise;
    const open = () => {
      if (running.closed === promise) running.closed = undefined;
      resolve();
    };
    if (running.count > 0) {
      const idle = Promise.withResolvers<void>();
      running.onIdle = idle.resolve;
      await withTimeout(waitMs, idle.promise);
    }
    const timer = setTimeout(() => {
      onLong();
      open();
    }, aloneMs);
    try {
      return await work();
    } finally {
      clearTimeout(timer);
      open();
    }
  },
});

/** Suspects that a process handles at a time: if it dies, only these are handled alone. */
const maxSuspects = 16;

/** The state of a process that handles suspects. */
export const createSuspects = () => {
  const running = createRunning();
  return {
    running,
    exclusion: createExclusion(running),
    gate: createFairGate({ total: maxSuspects, perKey: maxSuspects }),
    /** The notes that this process left, and how to remove them. */
    notes: new Map<string, () => Promise<void>>(),
  };
};
