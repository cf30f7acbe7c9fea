import { bucketCount, DeviceId, deviceBucket } from "@herald/contracts";
import { pageDevices } from "./plan-pages.ts";

/** Where a walk over the devices of a target continues. Devices are walked by bucket, and by id within a bucket. */
export type WalkPosition = {
  /** The next bucket to read. */
  readonly bucket: number;
  /** The last device of that bucket that was shown; absent: none. */
  readonly after?: DeviceId;
  /** How many buckets to read together. */
  readonly width: number;
};

/** One bucket of a million devices has 244 of them. */
export const walkStart: WalkPosition = { bucket: 0, width: 1 };

export const formatPosition = ({ bucket, after = "" as DeviceId, width }: WalkPosition): string =>
  `${bucket}/${width}/${after}`;

/** A walk that continues after a device. */
export const walkAfter = (after: DeviceId): WalkPosition => ({ bucket: deviceBucket(after), after, width: 1 });

/** Undefined for a text that is no position. */
export const parsePosition = (text: string): WalkPosition | undefined => {
  const [, bucket, width, after = ""] = /^(\d{1,4})\/(\d{1,4})\/(.*)$/.exec(text) ?? [];
  if (bucket === undefined || Number(bucket) >= bucketCount || Number(width) < 1 || Number(width) > bucketCount)
    return undefined;
  if (after === "") return { bucket: Number(bucket), width: Number(width) };
  const device = DeviceId.safeParse(after);
  if (!device.success || deviceBucket(device.data) !== Number(bucket)) return undefined;
  return { bucket: Number(bucket), width: Number(width), after: device.data };
};

/** In the order of the walk. */
export const byWalk = (one: DeviceId, other: DeviceId): number =>
  deviceBucket(one) - deviceBucket(other) || (one < other ? -1 : one > other ? 1 : 0);

/** How much wider the next read may be: one read of a dense range behind an empty one must stay small. */
const growth = 4;

/**
 * How many buckets to read next, after `width` of them had `read` rows, of which `matched` were wanted: enough for a page, and no more rows
 * than a page of an expansion.
 */
export const nextWidth = (
  width: number,
  { read, matched, perPage }: { readonly read: number; readonly matched: number; readonly perPage: number },
): number => {
  const enough = matched === 0 ? bucketCount : Math.ceil((width * (perPage + 1) * 1.5) / matched);
  const affordable = read === 0 ? bucketCount : Math.floor((width * pageDevices) / read);
  return Math.max(1, Math.min(width * growth, enough, affordable, bucketCount));
};
