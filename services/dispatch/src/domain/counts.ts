import type { NotificationCounts } from "@herald/contracts";

/** Counts over the devices of one ledger row or several; their sum is the counts of a notification. */
export type Tally = {
  /** Devices that are counted here; one that waits in a child is counted there. */
  readonly devices: number;
  readonly accepted: number;
  readonly failed: number;
  readonly expired: number;
  readonly cancelled: number;
  /** By reason; absent: none were. */
  readonly skips?: Failures;
};

export type Failures = Readonly<Record<string, number>>;

export const noDevices: Tally = { devices: 0, accepted: 0, failed: 0, expired: 0, cancelled: 0 };

export const addTallies = (one: Tally, other: Tally): Tally => ({
  devices: one.devices + other.devices,
  accepted: one.accepted + other.accepted,
  failed: one.failed + other.failed,
  expired: one.expired + other.expired,
  cancelled: one.cancelled + other.cancelled,
  ...((one.skips || other.skips) && { skips: addFailures(one.skips ?? {}, other.skips ?? {}) }),
});

export const skippedOf = ({ skips = {} }: Pick<Tally, "skips">): number =>
  Object.values(skips).reduce((sum, count) => sum + count, 0);

export const addFailures = (one: Failures, other: Failures): Failures => {
  const sum: Record<string, number> = { ...one };
  for (const [reason, count] of Object.entries(other)) sum[reason] = (sum[reason] ?? 0) + count;
  return sum;
};

/**
 * The counts that are shown, where `expandedDevices` is what registry partitioned: its batches reach the ledger one by one, and until
 * then their devices are pending. devices = accepted + failed + expired + cancelled + skipped + pending, always.
 */
export const shownCounts = (tally: Tally, expandedDevices = 0): NotificationCounts => {
  const devices = Math.max(tally.devices, expandedDevices);
  const skipped = skippedOf(tally);
  const settled = tally.accepted + tally.failed + tally.expired + tally.cancelled + skipped;
  return {
    devices,
    accepted: tally.accepted,
    failed: tally.failed,
    expired: tally.expired,
    cancelled: tally.cancelled,
    skipped,
    pending: devices - settled,
    opened: 0,
  };
};
