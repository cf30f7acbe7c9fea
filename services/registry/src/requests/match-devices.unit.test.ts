import { bucketCount, bucketOf, newDeviceId } from "@herald/contracts";
import { describe, expect, test } from "vitest";
import { pageDevices } from "../domain/partition-batches.ts";
import { formatPosition, nextWidth, parsePosition, walkStart } from "./match-devices.ts";

const device = newDeviceId(new Date());
const bucket = bucketOf(device);

describe("a position", () => {
  test.each([walkStart, { bucket, width: 12, after: device }, { bucket: 4_095, width: 4_096 }])(
    "%o is read as it was written",
    (position) => expect(parsePosition(formatPosition(position))).toEqual(position),
  );

  test.each([
    "",
    "x",
    "4096/1/",
    "0/0/",
    "0/5000/",
    "-1/1/",
    "0/1/dev_1",
    `${(bucket + 1) % 4_096}/1/${device}`,
    device,
  ])("%j is none", (text) => expect(parsePosition(text)).toBeUndefined());
});

describe("the next read", () => {
  test.each([
    ["grows fourfold behind empty buckets", 4, { read: 0, matched: 0, perPage: 20 }, 16],
    ["ends with the buckets", bucketCount, { read: 0, matched: 0, perPage: 20 }, bucketCount],
    ["reads enough for a page", 64, { read: 64, matched: 64, perPage: 20 }, 32],
    ["reads no more than a page of an expansion", 1, { read: 1_000, matched: 1, perPage: 100 }, 1],
    ["shrinks when its buckets were dense", 16, { read: pageDevices * 4, matched: 0, perPage: 20 }, 4],
    ["is one bucket at least", 1, { read: 100_000, matched: 100_000, perPage: 1 }, 1],
  ])("%s", (_, width, seen, next) => expect(nextWidth(width, seen)).toBe(next));
});
