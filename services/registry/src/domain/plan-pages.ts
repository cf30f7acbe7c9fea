import { bucketCount } from "@herald/contracts";

/** Both borders included. */
export type BucketRange = { readonly from: number; readonly to: number };

/**
 * Two batches that are nearly full: the number of devices of a range varies by some forty, and two full ones would leave a third small
 * batch. A page is read in some 20 ms and takes less than a megabyte.
 */
export const pageDevices = 1_900;

/** A smaller audience is one page. Counting stops here, and the audience is estimated. */
export const smallAudience = 3_000;

/** An audience is estimated from every 64th bucket: for a million devices that counts some 16,000. */
export const sampleEvery = 64;

export const allBuckets: BucketRange = { from: 0, to: bucketCount - 1 };

export const firstPage = (audience: number): BucketRange => {
  if (audience <= smallAudience) return allBuckets;
  const width = Math.max(1, Math.floor((bucketCount * pageDevices) / audience));
  return { from: 0, to: Math.min(width, bucketCount) - 1 };
};

/** The page after this one, as wide, or undefined after the last. */
export const nextPage = ({ from, to }: BucketRange): BucketRange | undefined => {
  if (to >= bucketCount - 1) return undefined;
  return { from: to + 1, to: Math.min(to + (to - from + 1), bucketCount - 1) };
};

/** How many buckets each page has, derived from one of them: the last one may be cut. */
export const pageBuckets = (page: number, { from, to }: BucketRange): number =>
  page === 0 ? to - from + 1 : from / page;

/** Undefined for all buckets: the query then needs no filter. */
export const bucketsOf = ({ from, to }: BucketRange): number[] | undefined =>
  to - from + 1 >= bucketCount ? undefined : Array.from({ length: to - from + 1 }, (_, index) => from + index);

export const sampledBuckets = (): number[] =>
  Array.from({ length: bucketCount / sampleEvery }, (_, index) => index * sampleEvery);
