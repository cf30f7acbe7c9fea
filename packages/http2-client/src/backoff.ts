/**
 * Decides when the next attempt may start. The pause doubles from `firstMs` to `maxMs` with each consecutive failure, minus
 * random jitter of up to half, so that many processes do not retry at the same moment. All times come from one monotonic clock.
 */
export function createBackoff({ firstMs, maxMs }: { firstMs: number; maxMs: number }, random = Math.random) {
  let failures = 0;
  let nextAt = 0;
  let reason = "";
  return {
    failed(now: number, why: string): void {
      const pause = Math.min(maxMs, firstMs * 2 ** Math.min(failures, 30));
      failures++;
      reason = why;
      nextAt = now + pause * (0.5 + random() / 2);
    },
    succeeded(): void {
      failures = 0;
      nextAt = 0;
      reason = "";
    },
    failures: () => failures,
    nextAt: () => nextAt,
    /** The reason of the last failure; empty when the last attempt succeeded. */
    reason: () => reason,
  };
}
