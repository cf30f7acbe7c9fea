import { batchLimits, type DeviceId, type Platform, type Recipient } from "@herald/contracts";

/** A device of a page. `changedAt`: milliseconds since 1970. */
export type Partitionable = { readonly platform: Platform; readonly recipient: Recipient; readonly changedAt: number };

/** Where a batch begins: its platform and its first device. */
export type Border = { readonly platform: Platform; readonly from: DeviceId };

/** A batch's devices, sorted by id. */
export type Batch = { readonly platform: Platform; readonly devices: readonly Recipient[] };

/** The JSON of a batch without its devices has some 250 bytes. */
const envelopeBytes = 512;

/** The JSON of a device's id, times and names, and of its longest environment, kind and locale. */
const fixedBytes = 200;
const plainAscii = /^[\x20\x21\x23-\x5b\x5d-\x7e]*$/;

/** An upper bound of the bytes of its JSON. The JSON itself would be made for every device of every send. */
const weigh = ({ token, keys, vapidKeyId, userId }: Recipient): number =>
  fixedBytes +
  (userId === undefined ? 0 : JSON.stringify({ userId }).length) +
  (plainAscii.test(token) ? token.length : Buffer.byteLength(JSON.stringify(token))) +
  (keys === undefined && vapidKeyId === undefined ? 0 : JSON.stringify({ keys, vapidKeyId }).length);

const byId = (one: Partitionable, other: Partitionable): number => (one.recipient.id < other.recipient.id ? -1 : 1);

const byPlatform = (devices: Iterable<Partitionable>): Map<Platform, Partitionable[]> => {
  const platforms = Map.groupBy(devices, ({ platform }) => platform);
  for (const group of platforms.values()) group.sort(byId);
  return platforms;
};

/** Partitions devices, each id once, into batches of one platform within {@link batchLimits}, sorted by id. */
export const partitionBatches = (devices: Iterable<Partitionable>): Batch[] => {
  const batches: Batch[] = [];
  for (const [platform, sorted] of byPlatform(devices)) {
    let batch: Recipient[] = [];
    let bytes = envelopeBytes;
    for (const { recipient } of sorted) {
      const weight = weigh(recipient);
      if (batch.length > 0 && (batch.length >= batchLimits.devices || bytes + weight > batchLimits.bytes)) {
        batches.push({ platform, devices: batch });
        batch = [];
        bytes = envelopeBytes;
      }
      batch.push(recipient);
      bytes += weight;
    }
    batches.push({ platform, devices: batch });
  }
  return batches;
};

/** Enough to partition the same devices into the same batches again. */
export const bordersOf = (batches: readonly Batch[]): Border[] =>
  batches.flatMap(({ platform, devices: [first] }) => (first ? [{ platform, from: first.id }] : []));

/**
 * Partitions a page again by the borders of its first partition: as many batches, and no device moves to another one. A batch may
 * become empty. Devices before the first border of their platform are new and left out. If a batch has become too large, the devices that
 * changed last are left out; those of the first partition fit.
 */
export const repartitionBatches = (devices: Iterable<Partitionable>, borders: readonly Border[]): Batch[] => {
  const partitioned: Partitionable[][] = borders.map(() => []);
  const platforms = byPlatform(devices);
  for (const [platform, sorted] of platforms) {
    const own = [...borders.entries()]
      .filter(([, border]) => border.platform === platform)
      .sort(([, one], [, other]) => (one.from < other.from ? -1 : 1));
    let next = 0;
    for (const device of sorted) {
      while (next < own.length && (own[next]?.[1].from ?? "") <= device.recipient.id) next++;
      const at = own[next - 1]?.[0];
      if (at !== undefined) partitioned[at]?.push(device);
    }
  }
  return borders.map(({ platform }, at) => ({ platform, devices: trim(partitioned[at] ?? []) }));
};

const trim = (devices: readonly Partitionable[]): Recipient[] => {
  const weights = devices.map(({ recipient }) => weigh(recipient));
  let bytes = weights.reduce((sum, weight) => sum + weight, envelopeBytes);
  let count = devices.length;
  if (count <= batchLimits.devices && bytes <= batchLimits.bytes) return devices.map(({ recipient }) => recipient);
  const latest = [...devices.keys()].sort(
    (one, other) => (devices[other]?.changedAt ?? 0) - (devices[one]?.changedAt ?? 0),
  );
  const left = new Set<number>();
  for (const at of latest) {
    if (count <= batchLimits.devices && bytes <= batchLimits.bytes) break;
    left.add(at);
    count--;
    bytes -= weights[at] ?? 0;
  }
  return devices.filter((_, at) => !left.has(at)).map(({ recipient }) => recipient);
};
