import { bucketCount } from "@herald/contracts";

/** Buckets of a page, both borders included. */
export type BucketRange = { readonly from: number; readonly to: number };

/**
 * Two batches that are nearly full: how many devices a range of buckets has differs by some forty, and who fits neither would be a
 * batch of a few. A page is read in some 20 ms and held in less than a megabyte.
 */
export const pageDevices = 1_900;

/** Up to here an audience is one page. It is also how far it is counted before it is estimated. */
export const smallAudience = 3_000;

/** An audience is estimated from every 64th bucket: for a million devices that counts some 16,000. */
export const sampleEvery = 64;

export const allBuckets: BucketRange = { from: 0, to: bucketCount - 1 };

/** The first page of an audience of so many devices: wide enough for about 1,900 of them. */
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

/** The buckets of a range as a list, or undefined when it is all of them and need not be asked for. */
export const bucketsOf = ({ from, to }: BucketRange): number[] | undefined =>
  to - from + 1 >= bucketCount ? undefined : Array.from({ length: to - from + 1 }, (_, index) => from + index);

/** The buckets that stand for all when an audience is estimated. */
export const sampledBuckets = (): number[] =>
  Array.from({ length: bucketCount / sampleEvery }, (_, index) => index * sampleEvery);
