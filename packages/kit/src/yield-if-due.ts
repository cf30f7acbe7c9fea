import { setImmediate } from "node:timers/promises";

/** Too short for a waiting request to notice, and a thousand times the cost of a turn of the event loop. */
const sliceMs = 10;

/** The last yielded computation. Only one continues per turn; otherwise a dozen would block the loop for a dozen slices. */
let turns: Promise<void> = Promise.resolve();

/**
 * Lets a long computation yield to other work of the process: call the function between two steps and await its result. Returns undefined,
 * in a few nanoseconds, until the computation has run for 10 ms since its last turn.
 */
export const createYieldIfDue = (): (() => Promise<void> | undefined) => {
  let since = performance.now();
  return () => {
    if (performance.now() - since < sliceMs) return undefined;
    turns = turns.then(() => setImmediate());
    return turns.then(() => {
      since = performance.now();
    });
  };
};
