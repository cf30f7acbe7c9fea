/** How often a device is tried before it counts as failed: with the ceilings below, an outage of five minutes is outlived. */
export const maxAttempts = 8;

/** FCM asks for at least ten seconds before the first repeat, and APNs for no hurry. */
const firstCeilingMs = 10_000;
/** Longer waits only make a message stale. */
const maxCeilingMs = 600_000;
/** Never in the same instant: what refused the message a moment ago would refuse it again. */
export const minWaitMs = 500;

/**
 * When a device is tried again after its `attempts`-th attempt: exponential with full jitter, never before `retryAfterMs` has
 * passed, and before `expiresAt`; undefined when there is no such moment. `random` is in [0, 1).
 */
export const nextAttemptAt = ({
  attempts,
  now,
  retryAfterMs = 0,
  expiresAt,
  random,
}: {
  attempts: number;
  now: Date;
  retryAfterMs?: number | undefined;
  expiresAt: Date;
  random: number;
}): Date | undefined => {
  const left = expiresAt.getTime() - now.getTime();
  const min = Math.max(minWaitMs, retryAfterMs);
  if (min >= left) return undefined;
  const ceiling = Math.min(maxCeilingMs, firstCeilingMs * 2 ** (attempts - 1));
  // What is asked for is waited out, and the jitter comes on top: otherwise all would come back in the same moment.
  const jitter = Math.min(ceiling, left - min) * random;
  return new Date(now.getTime() + min + Math.floor(jitter));
};
