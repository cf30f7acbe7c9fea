/**
 * When the next attempt may be made: doubles from `firstMs` to `maxMs` with every failure in a row, less up to a half
 * by chance, so that many processes do not come back at the same moment. Times are of one monotonic clock.
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
    /** Of the last failure; empty when the last attempt succeeded. */
    reason: () => reason,
  };
}
