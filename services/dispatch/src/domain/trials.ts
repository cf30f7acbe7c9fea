const minute = 60_000;
/**
 * While a provider refuses the credential, one waiting push is tried after each of these waits; the last repeats. By the reports of senders,
 * Apple refuses valid tokens for some minutes, and a wrong setting needs no faster trial.
 */
const waitsMs = [minute, 2 * minute, 5 * minute, 15 * minute] as const;

/** When a push is tried after `trials` refused ones. */
export const nextTrialAt = (trials: number, now: Date): Date =>
  new Date(now.getTime() + (waitsMs[trials] ?? waitsMs[waitsMs.length - 1] ?? 0));
