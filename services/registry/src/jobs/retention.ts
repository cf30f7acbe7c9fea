import type { RetentionRule } from "@herald/mongo";
import type { DeviceStore } from "../stores/device-store.ts";

/**
 * A tombstone goes with its event, within seconds. A crash between the two leaves one that no sweep finds, because it has no event
 * any more: after a day nobody is at it.
 */
const tombstoneMs = 86_400_000;

/** Everything else of registry is there until somebody deletes it, or is removed by the database's own clock (`expansions`). */
export const retentionRules = (devices: Pick<DeviceStore, "removeTombstones">): RetentionRule[] => [
  { name: "tombstones", keepMs: tombstoneMs, removeBatch: devices.removeTombstones },
];
