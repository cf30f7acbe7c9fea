import { setTimeout as sleep } from "node:timers/promises";
import { errors } from "@herald/contracts";
import { HeraldError } from "@herald/kit";

const firstWaitMs = 50;
const maxWaitMs = 5_000;

/** Whether an error means that a dependency is unavailable, so that a retry may succeed. */
export const isUnavailable = (error: unknown): boolean =>
  error instanceof HeraldError && errors[error.code].retry === "unavailable";

/**
 * Runs `work`, and repeats it with growing delay while a dependency is unavailable. For data that must not be lost, such as the
 * outcomes of pushes. The message is signalled as in progress meanwhile. Throws any other error of `work` after `otherAttempts`
 * attempts (absent: at once), and every error when `signal` is aborted because the service stops.
 */
export const retryWhileUnavailable = async <Result>(
  work: () => Promise<Result>,
  signal: AbortSignal,
  { otherAttempts = 1 }: { otherAttempts?: number } = {},
): Promise<Result> => {
  let others = 0;
  for (let wait = firstWaitMs; ; wait = Math.min(wait * 2, maxWaitMs)) {
    try {
      return await work();
    } catch (error) {
      if (signal.aborted || (!isUnavailable(error) && ++others >= otherAttempts)) throw error;
      const waited = await sleep(wait, true, { signal }).catch(() => false);
      if (!waited) throw error;
    }
  }
};

/** For outcomes: losing them would repeat the pushes, so unexpected errors are retried, too. */
export const outcomeRetries = { otherAttempts: 10 } as const;
