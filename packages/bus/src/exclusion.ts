import { createFairGate, withTimeout } from "@herald/kit";

/** Work that runs longer than this, such as the drain of a backlog, is not waited for. */
const maxWaitMs = 1_000;
/** Longer than a process needs to run out of memory over one message, and bearable for the work that waits. */
const maxAloneMs = 10_000;

/** Lets the work of a process run side by side, or one piece of it alone. */
export const createExclusion = ({ waitMs = maxWaitMs, aloneMs = maxAloneMs } = {}) => {
  let running = 0;
  /** Resolves when the work that runs alone has ended. */
  let closed: Promise<void> | undefined;
  let onIdle = () => {};

  return {
    /** Runs beside other work, after the work that runs alone. */
    beside: async <Result>(work: () => Promise<Result>): Promise<Result> => {
      while (closed) await closed;
      running++;
      try {
        return await work();
      } finally {
        if (--running === 0) onIdle();
      }
    },

    /**
     * Begins after the work that runs, and lets no other begin meanwhile. When it takes long, calls `onLong` and lets others begin.
     */
    alone: async <Result>(work: () => Promise<Result>, onLong: () => void): Promise<Result> => {
      while (closed) await closed;
      const { promise, resolve } = Promise.withResolvers<void>();
      closed = promise;
      const open = () => {
        if (closed === promise) closed = undefined;
        resolve();
      };
      if (running > 0) {
        const idle = Promise.withResolvers<void>();
        onIdle = idle.resolve;
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
  };
};

/** Suspects that a process handles at a time: if it dies, only these are handled alone. */
const maxSuspects = 16;

/** The state of a process that handles suspects. */
export const createSuspects = () => ({
  exclusion: createExclusion(),
  gate: createFairGate({ total: maxSuspects, perKey: maxSuspects }),
  /** The notes that this process left, and how to remove them. */
  notes: new Map<string, () => Promise<void>>(),
});
