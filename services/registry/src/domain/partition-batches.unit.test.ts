import {
  batchLimits,
  bucketCount,
  type DeviceId,
  newDeviceId,
  type Platform,
  pagesOfExpansion,
} from "@herald/contracts";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  allBuckets,
  type Batch,
  type BucketRange,
  bordersOf,
  bucketsOf,
  firstPage,
  nextPage,
  type Partitionable,
  pageBuckets,
  partitionBatches,
  repartitionBatches,
  sampledBuckets,
  sampleEvery,
} from "./partition-batches.ts";

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

test("the width of the pages follows from any page, and from none that does not exist", () => {
  const pages = pagesFrom({ from: 0, to: 99 });
  for (const [at, range] of pages.slice(0, -1).entries()) {
    expect(pageBuckets(at, range)).toBe(100);
    expect(pageBuckets(3 * pagesOfExpansion + at, range)).toBe(100);
  }
  for (const [page, from] of [
    [1_142_632_896, 3_072],
    [7, 100],
    [1, 0],
  ] as const)
    expect(pageBuckets(page, { from, to: 4_095 })).toBeUndefined();
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

const ids = Array.from({ length: 5_000 }, () => newDeviceId(new Date())).sort();
const idAt = (at: number): DeviceId => ids[at] ?? "dev_";

const device = (at: number, platform: Platform = "ios", tokenLength = 64, changedAt = 0): Partitionable => ({
  platform,
  changedAt,
  recipient: { id: idAt(at), token: "t".repeat(tokenLength), tokenAt: 1_700_000_000_000 },
});

const platform = fc.constantFrom<Platform>("ios", "android", "web");
const audience = fc.uniqueArray(fc.nat({ max: ids.length - 1 }), { maxLength: 3_600, size: "max" }).chain((positions) =>
  fc
    .array(fc.record({ platform, tokenLength: fc.constantFrom(1, 64, 2_048) }), {
      minLength: positions.length,
      maxLength: positions.length,
      size: "max",
    })
    .map((rest) => positions.map((at, n) => device(at, rest[n]?.platform, rest[n]?.tokenLength))),
);

const placeOf = (batches: readonly Batch[]): Map<string, number> =>
  new Map(batches.flatMap(({ devices }, n) => devices.map(({ id }) => [id, n] as const)));

const bytesOf = ({ platform, devices }: Batch): number =>
  Buffer.byteLength(
    JSON.stringify({
      batchId: `ntf_06bq4ghm31tz5d2ns8y7k9w0ac/4095/99`,
      projectId: "prj_06bq4ghm31tz5d2ns8y7k9w0ac",
      notificationId: "ntf_06bq4ghm31tz5d2ns8y7k9w0ac",
      lane: "broadcast",
      platform,
      devices,
    }),
  );

describe("the first partition", () => {
  test("each device once, in a batch of its platform, sorted, within the limits", () => {
    let max = 0;
    fc.assert(
      fc.property(audience, (devices) => {
        const batches = partitionBatches(devices);
        max = Math.max(max, batches.length);
        expect([...placeOf(batches).keys()].sort()).toEqual(devices.map(({ recipient }) => recipient.id).sort());
        const platforms = new Map(devices.map(({ recipient, platform }) => [recipient.id, platform]));
        for (const batch of batches) {
          const members = batch.devices.map(({ id }) => id);
          expect(members).toEqual([...members].sort());
          expect(new Set(members.map((id) => platforms.get(id)))).toEqual(new Set([batch.platform]));
          expect(members.length).toBeGreaterThan(0);
          expect(members.length).toBeLessThanOrEqual(batchLimits.devices);
          expect(bytesOf(batch)).toBeLessThanOrEqual(batchLimits.bytes);
        }
      }),
      { numRuns: 15 },
    );
    expect(max, "audiences large enough to say something").toBeGreaterThan(4);
  });

  test("fills batches", () => {
    expect(
      partitionBatches(Array.from({ length: 2_001 }, (_, at) => device(at))).map((batch) => batch.devices.length),
    ).toEqual([1_000, 1_000, 1]);
  });

  test("no devices make no batch", () => expect(partitionBatches([])).toEqual([]));

  test("a device that alone is too large has a batch of its own", () => {
    const batches = partitionBatches([device(0), device(1, "ios", batchLimits.bytes), device(2)]);
    expect(batches.map((batch) => batch.devices.length)).toEqual([1, 1, 1]);
  });

  test("tokens that JSON escapes count with their escaped length", () => {
    const quoted = Array.from({ length: 400 }, (_, at) => {
      const { recipient, ...rest } = device(at);
      return { ...rest, recipient: { ...recipient, token: '"'.repeat(2_048) } };
    });
    for (const batch of partitionBatches(quoted)) expect(bytesOf(batch)).toBeLessThanOrEqual(batchLimits.bytes);
  });

  test.each([
    ["quoted", '"'.repeat(1_500)],
    ["in another script", "名".repeat(1_000)],
    ["below the device's", { metadata: { plan: "p".repeat(3_000), seats: 7 } }],
    ["of few letters", true],
    ["a long number", -1.2345678901234567e-100],
  ])("values that are %s count as their JSON", (_, value) => {
    const values = Object.fromEntries(Array.from({ length: 20 }, (_, at) => [`value_${at}`, value]));
    const many = Array.from({ length: 900 }, (_, at) => {
      const { recipient, ...rest } = device(at);
      return { ...rest, recipient: { ...recipient, userId: `"${at}"`, values } };
    });
    const batches = partitionBatches(many);
    expect(batches.length).toBeGreaterThan(1);
    for (const batch of batches) expect(bytesOf(batch)).toBeLessThanOrEqual(batchLimits.bytes);
    const size = Buffer.byteLength(JSON.stringify({ values, userId: '"0"' }));
    expect(batches[0]?.devices.length).toBeGreaterThan(Math.floor(batchLimits.bytes / (size + 400)) - 2);
  });
});

describe("a later partition", () => {
  test("of the same devices is the same partition", () => {
    fc.assert(
      fc.property(audience, (devices) => {
        const batches = partitionBatches(devices);
        expect(repartitionBatches([...devices].reverse(), bordersOf(batches))).toEqual(batches);
      }),
      { numRuns: 10 },
    );
  });

  test("moves no device, loses no device of the first partition, adds none before the first border, and keeps the limits", () => {
    const later = fc.record({
      first: audience,
      stays: fc.func(fc.boolean()),
      more: fc.uniqueArray(fc.nat({ max: ids.length - 1 }), { maxLength: 1_000, size: "max" }),
    });
    fc.assert(
      fc.property(later, ({ first, stays, more }) => {
        const batches = partitionBatches(first);
        const borders = bordersOf(batches);
        const before = placeOf(batches);
        const staying = first.filter(({ recipient }) => stays(recipient.id));
        const newcomers = more.filter((at) => !before.has(idAt(at))).map((at) => device(at, "ios", 64, 1));
        const again = repartitionBatches([...newcomers, ...staying], borders);

        expect(again.map((batch) => batch.platform)).toEqual(borders.map((border) => border.platform));
        const after = placeOf(again);
        for (const { recipient } of staying) expect(after.get(recipient.id)).toBe(before.get(recipient.id));
        for (const [id, n] of after) expect(id >= (borders[n]?.from ?? "~")).toBe(true);
        for (const batch of again) {
          expect(batch.devices.length).toBeLessThanOrEqual(batchLimits.devices);
          expect(bytesOf(batch)).toBeLessThanOrEqual(batchLimits.bytes);
          const members = batch.devices.map(({ id }) => id);
          expect(members).toEqual([...members].sort());
        }
      }),
      { numRuns: 15 },
    );
  });

  test("a batch whose devices are gone stays, empty", () => {
    const devices = Array.from({ length: 2_001 }, (_, at) => device(at));
    const again = repartitionBatches(devices.slice(1_000), bordersOf(partitionBatches(devices)));
    expect(again.map((batch) => batch.devices.length)).toEqual([0, 1_000, 1]);
  });

  test("new devices of another platform fit no border", () => {
    const borders = bordersOf(partitionBatches([device(5)]));
    expect(repartitionBatches([device(5), device(6, "android")], borders)).toEqual([
      { platform: "ios", devices: [device(5).recipient] },
    ]);
  });

  test("a batch that would be too large leaves out the devices that changed last", () => {
    const devices = Array.from({ length: batchLimits.devices }, (_, at) => device(at * 2));
    const borders = bordersOf(partitionBatches(devices));
    const late = [device(3, "ios", 64, 2), device(1, "ios", 64, 1)];
    const [batch] = repartitionBatches([...devices.slice(1), ...late], borders);
    const members = new Set(batch?.devices.map(({ id }) => id));
    expect(members.size).toBe(batchLimits.devices);
    expect(members.has(idAt(1))).toBe(true);
    expect(members.has(idAt(3))).toBe(false);
  });
});
