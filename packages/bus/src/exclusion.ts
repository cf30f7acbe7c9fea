import { createFairGate, withTimeout } from "@herald/kit";
import { createRunning, type Running, runBeside } from "./permit.ts";

/** Work that runs longer than this, such as the drain of a backlog, is not waited for. */
const maxWaitMs = 1_000;
/** Longer than a process needs to run out of memory over one message, and bearable for the work that waits. */
const maxAloneMs = 10_000;

type Turn = {
  /** How often a process ended while it ran alone: the likelier cause goes first. */
  readonly deaths: number;
  /** Asked when its turn comes: if true, it runs beside others. */
  readonly isCleared: () => boolean;
  /** Called before it runs alone. */
  readonly onAlone: () => Promise<void>;
  /** Called when it takes long alone, and others begin. */
  readonly onLong: () => void;
};

/** Lets one piece of the work of a process run alone. */
export const createExclusion = (running: Running, { waitMs = maxWaitMs, aloneMs = maxAloneMs } = {}) => {
  /** The deaths of all that wait for their turn. */
  const waiting: number[] = [];
  return {
    /** Begins after the work that runs, and lets no other begin meanwhile, unless it takes long. */
    alone: async <Result>(
      work: () => Promise<Result>,
      { deaths, isCleared, onAlone, onLong }: Turn,
    ): Promise<Result> => {
      waiting.push(deaths);
      // The one that goes first wakes up in the same turn of the event loop.
      while (running.closed || waiting.some((other) => other > deaths)) await running.closed;
      waiting.splice(waiting.indexOf(deaths), 1);
      if (isCleared()) return runBeside(running, work);
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
        await onAlone();
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
export const createSuspects = () => {
  const running = createRunning();
  return {
    running,
    exclusion: createExclusion(running),
    gate: createFairGate({ total: maxSuspects, perKey: maxSuspects }),
    /** The notes that this process left, and how to remove them. */
    notes: new Map<string, () => Promise<void>>(),
    /** When this process last found one to be the cause of deaths, in milliseconds of `performance.now()`. */
    foundAt: Number.NEGATIVE_INFINITY,
  };
};
