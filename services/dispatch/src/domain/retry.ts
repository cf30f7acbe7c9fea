/** Attempts per device before it counts as failed. A try that the provider certainly did not process is no attempt. */
export const maxPushAttempts = 8;

/** FCM asks senders to wait at least ten seconds before the first retry. APNs needs no faster one. */
const firstCeilingMs = 10_000;
/** A longer wait only makes a message stale. */
const maxCeilingMs = 600_000;
/**
 * Tries that use no attempt go on until the notification expires, so each lengthens the ceiling by a twentieth: an outage of half an hour
 * takes ten tries, and 28 days take 120.
 */
const unprocessedFactor = 1.05;
/** A server that has just refused a message would refuse an immediate retry, too. */
const minWaitMs = 500;

/**
 * The time of the next try after `attempts` attempts and `unprocessed` tries that used none: exponential backoff with full jitter, never
 * before `retryAfterMs` has passed, and always before `expiresAt`. Undefined when no such time exists. `random` is in [0, 1).
 */
export const nextAttemptAt = ({
  attempts,
  unprocessed = 0,
  now,
  retryAfterMs = 0,
  expiresAt,
  random,
}: Record<"now" | "expiresAt", Date> &
  Record<"attempts" | "random", number> & {
    unprocessed?: number | undefined;
    retryAfterMs?: number | undefined;
  }): Date | undefined => {
  const left = expiresAt.getTime() - now.getTime();
  const min = Math.max(minWaitMs, retryAfterMs);
  if (min >= left) return undefined;
  const backoff = Math.min(maxCeilingMs, firstCeilingMs * 2 ** (attempts + unprocessed - 1));
  const ceiling = backoff * unprocessedFactor ** Math.max(0, unprocessed - maxPushAttempts);
  // Jitter is added to Retry-After, never subtracted: otherwise all devices would be retried at the same moment.
  const jitter = Math.min(ceiling, left - min) * random;
  return new Date(now.getTime() + min + Math.floor(jitter));
};
