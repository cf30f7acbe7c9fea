import { setTimeout as sleep } from "node:timers/promises";
import { errors } from "@herald/contracts";
import { HeraldError } from "@herald/kit";

const firstWaitMs = 50;
const longestWaitMs = 5_000;

/** Whether something that is needed cannot be reached now, so that the same may succeed later. */
export const isUnavailable = (error: unknown): boolean =>
  error instanceof HeraldError && errors[error.code].retry === "away";

/**
 * Runs `work`, and again with growing delay while something it needs is away: for what must not be thrown away, such as the
 * outcomes of what was sent. The message is signalled as in progress meanwhile. Throws what `work` threw for any other reason,
 * and when `signal` is aborted because the service ends.
 */
export const keepTrying = async <Result>(work: () => Promise<Result>, signal: AbortSignal): Promise<Result> => {
  for (let wait = firstWaitMs; ; wait = Math.min(wait * 2, longestWaitMs)) {
    try {
      return await work();
    } catch (error) {
      if (!isUnavailable(error) || signal.aborted) throw error;
      const waited = await sleep(wait, true, { signal }).catch(() => false);
      if (!waited) throw error;
    }
  }
};
