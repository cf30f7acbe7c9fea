/** Attempts per device before it counts as failed. With the ceilings below, pushes survive an outage of five minutes. */
export const maxPushAttempts = 8;

/** FCM asks senders to wait at least ten seconds before the first retry. APNs needs no faster one. */
const firstCeilingMs = 10_000;
/** A longer wait only makes a message stale. */
const maxCeilingMs = 600_000;
/** A server that has just refused a message would refuse an immediate retry, too. */
export const minWaitMs = 500;

/**
 * The time of the next attempt after `attempts` attempts: exponential backoff with full jitter, never before `retryAfterMs` has
 * passed, and always before `expiresAt`. Undefined when no such time exists. `random` is in [0, 1).
 */
export const nextAttemptAt = ({
  attempts,
  now,
  retryAfterMs = 0,
  expiresAt,
  random,
}: Record<"now" | "expiresAt", Date> & Record<"attempts" | "random", number> & { retryAfterMs?: number }):
  | Date
  | undefined => {
  const left = expiresAt.getTime() - now.getTime();
  const min = Math.max(minWaitMs, retryAfterMs);
  if (min >= left) return undefined;
  const ceiling = Math.min(maxCeilingMs, firstCeilingMs * 2 ** (attempts - 1));
  // Jitter is added to Retry-After, never subtracted: otherwise all devices would be retried at the same moment.
  const jitter = Math.min(ceiling, left - min) * random;
  return new Date(now.getTime() + min + Math.floor(jitter));
};
