import { setTimeout as sleep } from "node:timers/promises";
import { errors } from "@herald/contracts";
import { HeraldError } from "@herald/kit";

const firstWaitMs = 50;
const maxWaitMs = 5_000;

/** Whether something that is needed cannot be reached now, so that the same may succeed later. */
export const isUnavailable = (error: unknown): boolean =>
  error instanceof HeraldError && errors[error.code].retry === "unavailable";

/**
 * Runs `work`, and again with growing delay while something it needs is unavailable: for what must not be thrown away, such as the
 * outcomes of what was sent. The message is signalled as in progress meanwhile. What `work` throws for any other reason is thrown, after
 * `otherAttempts` of it (absent: at once), and so is anything when `signal` is aborted because the service ends.
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

/** For outcomes: losing them would send again what was sent, so unexpected errors are retried, too. */
export const outcomeRetries = { otherAttempts: 10 } as const;
