import type { NotificationCounts, NotificationStatus } from "@herald/contracts";

/** Counts over the devices of one or more ledger rows. The sum over all rows is the counts of a notification. */
export type Tally = {
  /** Devices that are counted here. A device that waits in a child row is counted there. */
  readonly devices: number;
  readonly accepted: number;
  readonly failed: number;
  readonly expired: number;
  readonly cancelled: number;
  /** Accepted devices that were asked for a receipt. Absent: none. */
  readonly asked?: number;
  /** Skipped devices by reason. Absent: none. */
  readonly skips?: Failures;
};

export type Failures = Readonly<Record<string, number>>;

export const emptyTally: Tally = { devices: 0, accepted: 0, failed: 0, expired: 0, cancelled: 0 };

export const addTallies = (one: Tally, other: Tally): Tally => ({
  devices: one.devices + other.devices,
  accepted: one.accepted + other.accepted,
  failed: one.failed + other.failed,
  expired: one.expired + other.expired,
  cancelled: one.cancelled + other.cancelled,
  ...((one.asked || other.asked) && { asked: (one.asked ?? 0) + (other.asked ?? 0) }),
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
 * The counts that clients see. `expandedDevices`: how many devices registry partitioned. They are pending until their batches reach
 * the ledger. Always: devices = accepted + failed + expired + cancelled + skipped + pending.
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
    receipts_asked: tally.asked ?? 0,
    received: 0,
    dismissed: 0,
  };
};

/** The states that a notification never leaves. */
export type FinalStatus = Extract<NotificationStatus, "completed" | "cancelled" | "expired">;

/** The final status of a notification. If its targets matched no device, it is completed. */
export const finalStatus = (cancelled: boolean, { devices, expired }: Tally): FinalStatus => {
  if (cancelled) return "cancelled";
  return devices > 0 && expired === devices ? "expired" : "completed";
};

/** Answers that say something of the token itself, of one notification so far. */
export type TokenAnswers = { readonly total: number; readonly unregistered: number };

/** With fewer answers, a share means nothing. */
const minTokenAnswers = 50;
const maxUnregistered = 0.2;

/**
 * Whether the provider calls so many tokens of a notification dead that its answers are doubtful: a wrong environment or credential
 * looks the same. In that case, no device is retired.
 */
export const isSpike = ({ total, unregistered }: TokenAnswers): boolean =>
  total >= minTokenAnswers && unregistered > total * maxUnregistered;
