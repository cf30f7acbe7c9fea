import type { DeliveryReason, DeliveryStatus } from "@herald/contracts";
import type { Failures, Tally } from "./notification-counts.ts";

/** The result of a device in one row of the ledger. `deferred` devices continue in the row's child and are counted there. */
export type DeviceResult = {
  readonly status: Exclude<DeliveryStatus, "pending"> | "deferred";
  readonly reason?: DeliveryReason | undefined;
  readonly providerReason?: string | undefined;
  /** Attempts that ended, including this row's attempt unless it was `unprocessed`. */
  readonly attempts: number;
  readonly possibleRepeat: boolean;
  /** The push was not sent, because its server is blocked. */
  readonly blocked?: true;
  /** The provider certainly did not process the push, so it used no attempt. */
  readonly unprocessed?: true;
  /** The push asked the device for a receipt. */
  readonly asked?: true;
};

/** An index is one byte. No provider has this many responses; beyond the limit, results are stored without `providerReason`. */
const maxResults = 200;

/** The distinct results of a row, and which device has which. 500 devices rarely have more than a handful of results. */
export const createResultTable = (devices: number) => {
  const results: DeviceResult[] = [];
  const sizes: number[] = [];
  const known = new Map<string, number>();
  let latest: { readonly result: DeviceResult; readonly index: number } | undefined;
  /** For each device the index of its result. */
  const resultOf = new Uint8Array(devices);

  const find = (result: DeviceResult): number => {
    const { status, reason, providerReason, attempts, possibleRepeat, blocked, unprocessed, asked } = result;
    const key = JSON.stringify([status, reason, attempts, possibleRepeat, blocked, unprocessed, asked, providerReason]);
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
    let asked = 0;
    for (const [index, { status, reason, asked: isAsked }] of results.entries()) {
      const size = sizes[index] ?? 0;
      if (status === "deferred") continue;
      tally.devices += size;
      if (status === "skipped") {
        if (reason !== undefined) skips[reason] = (skips[reason] ?? 0) + size;
        continue;
      }
      tally[status] += size;
      if (isAsked) asked += size;
      if (status === "failed" && reason !== undefined) failures[reason] = (failures[reason] ?? 0) + size;
    }
    const more = { ...(asked > 0 && { asked }), ...(Object.keys(skips).length > 0 && { skips }) };
    return { tally: asked > 0 || "skips" in more ? { ...tally, ...more } : tally, failures };
  };

  return {
    results,
    resultOf,
    sums,
    /** Called once for each device. */
    put: (device: number, result: DeviceResult) => {
      // Nearly all devices share one object.
      if (latest?.result !== result) latest = { result, index: find(result) };
      const { index } = latest;
      resultOf[device] = index;
      sizes[index] = (sizes[index] ?? 0) + 1;
    },
  };
};
