import { currentDeadline } from "@herald/kit";

/** The time limit of a background read: longer than counting the largest set, so that a stuck one ends. */
const unawaitedMs = 55_000;

/**
 * Options of a read whose cost grows with what there is: the server stops it when the caller no longer waits. Not for reads that
 * several callers share.
 */
export const deadlineOptions = (): { maxTimeMS: number } => ({
  maxTimeMS: Math.max(1, Math.ceil(currentDeadline()?.remainingMs() ?? unawaitedMs)),
});
