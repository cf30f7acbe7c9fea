/**
 * Decides when the next attempt may start. The pause doubles from `firstMs` to `maxMs` with each consecutive failure, minus
 * random jitter of up to half, so that many processes do not retry at the same moment. All times come from one monotonic clock.
 */
export function createBackoff({ firstMs, maxMs }: { firstMs: number; maxMs: number }, random = Math.random) {
  const backoff = {
    failures: 0,
    nextAt: 0,
    /** The reason of the last failure; empty when the last attempt succeeded. */
    reason: "",
    failed(now: number, why: string): void {
      const pause = Math.min(maxMs, firstMs * 2 ** Math.min(backoff.failures, 30));
      backoff.failures++;
      backoff.reason = why;
      backoff.nextAt = now + pause * (0.5 + random() / 2);
    },
    /** Needed only after a failure. */
    succeeded(): void {
      backoff.failures = 0;
      backoff.nextAt = 0;
      backoff.reason = "";
    },
  };
  return backoff;
}
