const minute = 60_000;
const hour = 60 * minute;

/** Delays before each attempt; the last is a little more than a day after the first, as Standard Webhooks recommends. */
const delaysMs = [0, 5_000, 5 * minute, 30 * minute, 2 * hour, 5 * hour, 10 * hour, 10 * hour] as const;

export const maxAttempts = delaysMs.length;

/** Spreads retries, so that a receiver that recovers does not get all of them at once. */
const jitterShare = 0.1;

/** A wrong or hostile `Retry-After` delays a webhook no longer than the schedule would. */
const maxRetryAfterMs = 10 * hour;

/** The time of the retry after `attempts` attempts, not before `retryAfterMs` has passed; undefined: none. `random` is in [0, 1). */
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
  const min = Math.max(delay, Math.min(retryAfterMs, maxRetryAfterMs));
  return new Date(now.getTime() + min + Math.floor(delay * jitterShare * random));
};

/** A webhook without any success for so long is disabled. */
export const maxFailureMs = 5 * 24 * hour;
