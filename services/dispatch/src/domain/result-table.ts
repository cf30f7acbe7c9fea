import type { DeliveryReason, DeliveryStatus } from "@herald/contracts";
import type { Failures, Tally } from "./counts.ts";

/** The result of a device in one row of the ledger. `deferred` devices continue in the row's child and are counted there. */
export type DeviceResult = {
  readonly status: Exclude<DeliveryStatus, "pending"> | "deferred";
  readonly reason?: DeliveryReason | undefined;
  readonly providerReason?: string | undefined;
  /** Attempts that ended, this row's included. */
  readonly attempts: number;
  readonly possibleRepeat: boolean;
  /** It was not sent, because its server must be left alone. */
  readonly blocked?: true;
};

/** One byte holds an index. No provider has so many answers: past it their words are left out. */
const maxResults = 200;

const same = (one: DeviceResult, other: DeviceResult | undefined): boolean =>
  one.status === other?.status &&
  one.reason === other.reason &&
  one.providerReason === other.providerReason &&
  one.attempts === other.attempts &&
  one.possibleRepeat === other.possibleRepeat &&
  one.blocked === other.blocked;

/** The distinct results of a row and who got which: five hundred devices rarely have more than a handful. */
export const createResultTable = (devices: number) => {
  const results: DeviceResult[] = [];
  const sizes: number[] = [];
  const known = new Map<string, number>();
  let latest = -1;
  /** For each device the index of its result. */
  const resultOf = new Uint8Array(devices);

  const indexOf = (result: DeviceResult): number => {
    // Nearly always the same as for the device before.
    if (latest >= 0 && same(result, results[latest])) return latest;
    latest = find(result);
    return latest;
  };

  const find = (result: DeviceResult): number => {
    const { status, reason, providerReason, attempts, possibleRepeat, blocked } = result;
    const key = JSON.stringify([status, reason, attempts, possibleRepeat, blocked, providerReason]);
    const found = known.get(key);
    if (found !== undefined) return found;
    if (results.length >= maxResults && providerReason !== undefined)
      return find({ ...result, providerReason: undefined });
    known.set(key, results.length);
    sizes.push(0);
    return results.push(result) - 1;
  };

  const sums = (): { tally: Tally; failures: Failures } => {
    const tally = { devices: 0, accepted: 0, failed: 0, expired: 0, cancelled: 0 };
    const failures: Record<string, number> = {};
    const skips: Record<string, number> = {};
    for (const [index, { status, reason }] of results.entries()) {
      const size = sizes[index] ?? 0;
      if (status === "deferred") continue;
      tally.devices += size;
      if (status === "skipped") {
        if (reason !== undefined) skips[reason] = (skips[reason] ?? 0) + size;
        continue;
      }
      tally[status] += size;
      if (status === "failed" && reason !== undefined) failures[reason] = (failures[reason] ?? 0) + size;
    }
    return { tally: Object.keys(skips).length > 0 ? { ...tally, skips } : tally, failures };
  };

  return {
    results,
    resultOf,
    sums,
    /** Called once for each device. */
    put: (device: number, result: DeviceResult) => {
      const index = indexOf(result);
      resultOf[device] = index;
      sizes[index] = (sizes[index] ?? 0) + 1;
    },
  };
};
