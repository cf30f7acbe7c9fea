import {
  batchLimits,
  bucketCount,
  type DeviceId,
  otherProvider,
  pagesOfExpansion,
  type Recipient,
  type Served,
  servingProvider,
} from "@herald/contracts";

/** Both bounds are inclusive. */
export type BucketRange = { readonly from: number; readonly to: number };

/**
 * Two nearly full batches: the number of devices in a range varies by about forty, and a page for two full batches would often need a
 * small third one. A page is read in about 20 ms and takes less than a megabyte.
 */
export const pageDevices = 1_900;

/** An audience up to this size is one page. Counting stops here; a larger audience is estimated. */
export const smallAudience = 3_000;

/** A large audience is estimated from every 64th bucket: of a million devices, about 16,000 are counted. */
export const sampleEvery = 64;

export const allBuckets: BucketRange = { from: 0, to: bucketCount - 1 };

/** The first page of an audience, of whose buckets only those of `within` are read. */
export const firstPage = (audience: number, within = allBuckets): BucketRange => {
  if (audience <= smallAudience) return within;
  const width = Math.max(1, Math.floor((bucketCount * pageDevices) / audience));
  return { from: within.from, to: Math.min(within.from + width - 1, within.to) };
};

/** The next page, with as many buckets; undefined after the last. */
export const nextPage = ({ from, to }: BucketRange, within = allBuckets): BucketRange | undefined => {
  if (to >= within.to) return undefined;
  return { from: to + 1, to: Math.min(to + (to - from + 1), within.to) };
};

/** How many buckets each page has, derived from any page; undefined: no page with this number has them. The last page may have fewer. */
export const pageBuckets = (page: number, { from, to }: BucketRange, within = allBuckets): number | undefined => {
  const inExpansion = page % pagesOfExpansion;
  const buckets = inExpansion === 0 ? to - from + 1 : (from - within.from) / inExpansion;
  return Number.isInteger(buckets) && buckets > 0 ? buckets : undefined;
};

/** Undefined for all buckets: the query then needs no filter. */
export const bucketsOf = ({ from, to }: BucketRange): number[] | undefined =>
  to - from + 1 >= bucketCount ? undefined : Array.from({ length: to - from + 1 }, (_, index) => from + index);

export const sampledBuckets = (): number[] =>
  Array.from({ length: bucketCount / sampleEvery }, (_, index) => index * sampleEvery);

/** A device of a page. `changedAt`: milliseconds since 1970. */
export type Partitionable = Served & { readonly recipient: Recipient; readonly changedAt: number };

/** Where a batch begins: its platform, its provider and its first device. */
export type Border = Served & { readonly from: DeviceId };

/** A batch's devices, sorted by id. */
export type Batch = Served & { readonly devices: Recipient[] };

/** The JSON of a batch without its devices has some 250 bytes. */
const envelopeBytes = 512;

/** The JSON of a device's id, time and field names, with the longest environment, token kind and locale. */
const fixedBytes = 200;
/** The JSON around an app. */
const appBytes = 9;
/** The JSON of all capabilities has 50 bytes. */
const capabilityBytes = 64;
const plainAscii = /^[\x20\x21\x23-\x5b\x5d-\x7e]*$/;

/** The bytes of a text's JSON. */
const weighText = (text: string): number =>
  plainAscii.test(text) ? text.length + 2 : Buffer.byteLength(JSON.stringify(text));

/** The bytes of `{ values }` as JSON, at a third of the cost. */
const weighValues = (values: NonNullable<Recipient["values"]>): number => {
  let bytes = '{"values":{}'.length;
  for (const name in values) {
    const value = values[name];
    // A colon and a comma.
    bytes += weighText(name) + 2;
    if (typeof value === "string") bytes += weighText(value);
    else bytes += typeof value === "object" ? Buffer.byteLength(JSON.stringify(value)) : String(value).length;
  }
  return bytes;
};

/** An upper bound of the recipient's JSON in bytes. It avoids serializing every device of every send. */
const weigh = ({ token, keys, vapidKeyId, userId, app, capabilities, values }: Recipient): number =>
  fixedBytes +
  (values === undefined ? 0 : weighValues(values)) +
  (app === undefined ? 0 : app.length + appBytes) +
  (capabilities === undefined ? 0 : capabilityBytes) +
  (userId === undefined ? 0 : '{"userId":}'.length + weighText(userId)) +
  (plainAscii.test(token) ? token.length : Buffer.byteLength(JSON.stringify(token))) +
  (keys === undefined ? 0 : '"keys":{"p256dh":,"auth":},'.length + weighText(keys.p256dh) + weighText(keys.auth)) +
  (vapidKeyId === undefined ? 0 : '"vapidKeyId":,'.length + weighText(vapidKeyId));

const byId = (one: Partitionable, other: Partitionable): number => (one.recipient.id < other.recipient.id ? -1 : 1);

type Group = { readonly served: Served; readonly sorted: Partitionable[] };

const sameProvider = (one: Served, other: Served): boolean =>
  one.platform === other.platform && servingProvider(one) === servingProvider(other);

/** The devices of each platform and provider, sorted by id. */
const grouped = (devices: Iterable<Partitionable>): Group[] => {
  const groups: Group[] = [];
  let group: Group | undefined;
  for (const device of devices) {
    // Nearly always the group of the previous device.
    if (group === undefined || !sameProvider(group.served, device)) {
      group = groups.find(({ served }) => sameProvider(served, device));
      if (group === undefined) {
        group = { served: { platform: device.platform, ...otherProvider(device) }, sorted: [] };
        groups.push(group);
      }
    }
    group.sorted.push(device);
  }
  for (const { sorted } of groups) sorted.sort(byId);
  return groups;
};

/** Partitions devices, each id once, into batches of one platform and provider within {@link batchLimits}, sorted by id. */
export const partitionBatches = (devices: Iterable<Partitionable>): Batch[] => {
  const batches: Batch[] = [];
  for (const { served, sorted } of grouped(devices)) {
    let batch: Recipient[] = [];
    let bytes = envelopeBytes;
    for (const { recipient } of sorted) {
      const weight = weigh(recipient);
      if (batch.length > 0 && (batch.length >= batchLimits.devices || bytes + weight > batchLimits.bytes)) {
        batches.push({ ...served, devices: batch });
        batch = [];
        bytes = envelopeBytes;
      }
      batch.push(recipient);
      bytes += weight;
    }
    batches.push({ ...served, devices: batch });
  }
  return batches;
};

/** Enough to partition the same devices into the same batches again. */
export const bordersOf = (batches: readonly Batch[]): Border[] =>
  batches.flatMap(({ devices: [first], ...served }) => (first ? [{ ...served, from: first.id }] : []));

/**
 * Partitions a page again with the borders of its first partition: the number of batches stays, and no device moves to another batch. A
 * batch may become empty. Devices before the first border of their platform and provider are new, so they are left out. If a batch has
 * become too large, the devices that changed last are left out; the devices of the first partition fit.
 */
export const repartitionBatches = (devices: Iterable<Partitionable>, borders: readonly Border[]): Batch[] => {
  const partitioned: Partitionable[][] = borders.map(() => []);
  for (const { served, sorted } of grouped(devices)) {
    const own = [...borders.entries()]
      .filter(([, border]) => sameProvider(border, served))
      .sort(([, one], [, other]) => (one.from < other.from ? -1 : 1));
    let next = 0;
    for (const device of sorted) {
      while (next < own.length && (own[next]?.[1].from ?? "") <= device.recipient.id) next++;
      const at = own[next - 1]?.[0];
      if (at !== undefined) partitioned[at]?.push(device);
    }
  }
  return borders.map(({ from: _, ...served }, at) => ({ ...served, devices: trim(partitioned[at] ?? []) }));
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
