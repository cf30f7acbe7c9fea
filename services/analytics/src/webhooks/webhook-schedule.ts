const minute = 60_000;
const hour = 60 * minute;

/** How long after the attempt before: the first at once, the last after a little more than a day. What Standard Webhooks' users expect. */
const delaysMs = [0, 5_000, 5 * minute, 30 * minute, 2 * hour, 5 * hour, 10 * hour, 10 * hour] as const;

/** How often a message is tried. */
export const maxAttempts = delaysMs.length;

/** Spreads what failed together, so that a receiver that comes back is not hit by all of it at once. */
const jitterShare = 0.1;

/** No webhook is kept waiting longer by a mangled or hostile `Retry-After` than the schedule would. */
const longestRetryAfterMs = 10 * hour;

/**
 * When a message is tried again after its `attempts`-th attempt; undefined when it is not. Never before `retryAfterMs` has
 * passed. `random` is in [0, 1).
 */
export const nextWebhookAttempt = ({
  attempts,
  now,
  retryAfterMs = 0,
  random,
}: {
  attempts: number;
  now: Date;
  retryAfterMs?: number | undefined;
  random: number;
}): Date | undefined => {
  const delay = delaysMs[attempts];
  if (delay === undefined) return undefined;
  const least = Math.max(delay, Math.min(retryAfterMs, longestRetryAfterMs));
  return new Date(now.getTime() + least + Math.floor(delay * jitterShare * random));
};

/** A webhook none of whose attempts succeeded for so long is disabled: its owner is unavailable, or does not look. */
export const longestFailureMs = 5 * 24 * hour;
