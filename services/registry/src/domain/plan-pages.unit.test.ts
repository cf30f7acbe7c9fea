import { bucketCount } from "@herald/contracts";
import fc from "fast-check";
import { expect, test } from "vitest";
import {
  allBuckets,
  type BucketRange,
  bucketsOf,
  firstPage,
  nextPage,
  sampledBuckets,
  sampleEvery,
} from "./plan-pages.ts";

const pagesFrom = (first: BucketRange): BucketRange[] => {
  const pages = [first];
  for (let page = nextPage(first); page; page = nextPage(page)) pages.push(page);
  return pages;
};

test.each([
  { audience: 0, pages: 1 },
  { audience: 1_500, pages: 1 },
  { audience: 3_000, pages: 1 },
  { audience: 3_001, pages: 2 },
  { audience: 100_000, pages: 54 },
  { audience: 1_000_000, pages: 586 },
  { audience: 100_000_000, pages: bucketCount },
])("an audience of $audience is $pages pages", ({ audience, pages }) => {
  expect(pagesFrom(firstPage(audience))).toHaveLength(pages);
});

test("pages cover every bucket once, whatever the size", () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 50_000_000 }), (audience) => {
      const pages = pagesFrom(firstPage(audience));
      expect(pages[0]?.from).toBe(0);
      expect(pages.at(-1)?.to).toBe(bucketCount - 1);
      const keyedMutex = pages.every(({ from, to }, at) => to >= from && from === (pages[at - 1]?.to ?? -1) + 1);
      expect(keyedMutex).toBe(true);
    }),
    { numRuns: 50 },
  );
});

test("a page of all buckets has no filter, another one its buckets", () => {
  expect(bucketsOf(allBuckets)).toBeUndefined();
  expect(bucketsOf({ from: 7, to: 9 })).toEqual([7, 8, 9]);
  expect(bucketsOf({ from: 1, to: bucketCount - 1 })).toHaveLength(bucketCount - 1);
});

test("the sample is a 64th of the buckets", () => {
  expect(sampledBuckets()).toHaveLength(bucketCount / sampleEvery);
  expect(new Set(sampledBuckets()).size).toBe(bucketCount / sampleEvery);
  expect(Math.max(...sampledBuckets())).toBeLessThan(bucketCount);
});
