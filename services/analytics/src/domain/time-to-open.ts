/** Each bucket ends 5 % above where it begins, so that its middle is at most 2.5 % off. */
const growth = Math.log(1.05);
/** People are not faster, and clocks differ by more. */
const minMs = 100;

export const timeBucket = (ms: number): number => Math.max(0, Math.floor(Math.log(ms / minMs) / growth) || 0);

/** The middle of a bucket, in seconds, to the millisecond. */
const secondsOf = (bucket: number): number => Math.round(minMs * Math.exp((bucket + 0.5) * growth)) / 1000;

/** Percentiles in seconds of a histogram by bucket; undefined when it is empty. */
export const timesToOpen = (
  histogram: Readonly<Record<string, number>>,
): { p50: number; p75: number; p90: number; p99: number } | undefined => {
  const buckets = Object.entries(histogram)
    .map(([bucket, count]) => [Number(bucket), count] as const)
    .toSorted(([one], [other]) => one - other);
  const total = buckets.reduce((sum, [, count]) => sum + count, 0);
  if (total === 0) return undefined;
  const at = (share: number): number => {
    // Nearest rank: the smallest value that this share is at or below.
    let left = Math.ceil(total * share);
    for (const [bucket, count] of buckets) {
      left -= count;
      if (left <= 0) return secondsOf(bucket);
    }
    return 0;
  };
  return { p50: at(0.5), p75: at(0.75), p90: at(0.9), p99: at(0.99) };
};
