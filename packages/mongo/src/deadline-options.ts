import { currentDeadline } from "@herald/kit";

/** What a read that nobody waits for may take at most: longer than counting the largest set, so that a stuck one ends. */
const unawaitedMs = 55_000;

/**
 * Options of a read whose cost grows with what there is: the server stops it when whoever asked waits no longer. Not for reads that
 * several callers share.
 */
export const deadlineOptions = (): { maxTimeMS: number } => ({
  maxTimeMS: Math.max(1, Math.ceil(currentDeadline()?.remainingMs() ?? unawaitedMs)),
});
