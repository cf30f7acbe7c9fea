import { setImmediate } from "node:timers/promises";

/** A request that waits behind it does not notice, and a turn of the event loop costs a thousandth of it. */
const sliceMs = 10;

/** The last of those that gave way. One goes on in each turn, or a dozen of them would be a slice of a dozen times as long. */
let turns: Promise<void> = Promise.resolve();

/**
 * For a long computation to give way to other work of the process: call it between two steps, and await what it gives. Undefined,
 * for a few nanoseconds, until the computation has had 10 ms since its last turn.
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
