import { type DeviceId, deviceBucket, type NotificationId, type ProjectId } from "@herald/contracts";
import type { Db, WithId } from "mongodb";
import { rootGeneration } from "../domain/batch-ids.ts";
import { type DeliveryDocument, deliveryCollection, deliveryHints } from "./delivery-document.ts";
import { rowsOf } from "./embedded-rows.ts";
import type { NotificationDocument } from "./notification-document.ts";
import { packedAt, packedCount } from "./packed-ids.ts";

type Row = WithId<DeliveryDocument>;

/** A row of the ledger that contains the device, and its index there. */
export type DeviceRow = { readonly row: Row; readonly index: number };

/** What must be known of a notification to find a device in its ledger. */
export type Located = Pick<
  NotificationDocument,
  "_id" | "projectId" | "rows" | "sending" | "queued" | "expansionLostAt"
> & {
  readonly expanded?: Omit<NonNullable<NotificationDocument["expanded"]>, "devices" | "unmatched">;
};

export const locatedFields = {
  projectId: 1,
  rows: 1,
  sending: 1,
  queued: 1,
  expansionLostAt: 1,
  "expanded.batches": 1,
  "expanded.at": 1,
  "expanded.pages": 1,
} as const;

/** Of up to 1,000 devices each: a broadcast's rows overlap, so many may have to be searched. */
const rowsAtATime = 50;

const indexOf = ({ deviceIds }: Pick<Row, "deviceIds">, id: DeviceId): number => {
  for (let at = 0; at < packedCount(deviceIds); at++) if (packedAt(deviceIds, at) === id) return at;
  return -1;
};

const find = (rows: readonly Row[], id: DeviceId): DeviceRow[] =>
  rows.map((row) => ({ row, index: indexOf(row, id) })).filter(({ index }) => index >= 0);

/**
 * The ids of the batches that may contain the device: those of its page. Undefined while its audience is being read, or when an older
 * version read it: then every batch may.
 */
export const batchesOf = ({ _id, expanded, expansionLostAt }: Located, id: DeviceId): string[] | undefined => {
  if (expansionLostAt) return undefined;
  // The batches of a small send are those of one page.
  const pages = expanded?.at ? expanded.pages : expanded && { buckets: Number.POSITIVE_INFINITY, ...expanded };
  if (!pages) return undefined;
  const page = Math.floor(deviceBucket(id) / pages.buckets);
  return Array.from({ length: pages.batches }, (_, n) => `${_id}/${page}/${n}`);
};

const isDeferred = ({ row, index }: DeviceRow): boolean =>
  row.results?.[row.resultOf?.value()[index] ?? 0]?.status === "deferred";

/** Finds a device in the ledgers of notifications. */
export const findDeviceRows = (db: Db) => {
  const deliveries = deliveryCollection(db);

  /** Searches all batches, as far as the order of their ids cannot exclude them. */
  const search = async (projectId: ProjectId, notificationId: NotificationId, id: DeviceId): Promise<string[]> => {
    const candidates = deliveries.find(
      {
        projectId,
        notificationId,
        firstDeviceId: { $lte: id },
        lastDeviceId: { $gte: id },
        generation: rootGeneration,
      },
      { hint: deliveryHints.devices, projection: { deviceIds: 1 }, batchSize: rowsAtATime },
    );
    for await (const row of candidates) if (indexOf(row, id) >= 0) return [row._id];
    return [];
  };

  const childrenOf = (projectId: ProjectId, { _id }: Row): Promise<Row[]> =>
    // `0` is the character after `/`.
    deliveries.find({ projectId, _id: { $gt: `${_id}/`, $lt: `${_id}0` } }, { hint: "_id_" }).toArray();

  /** The rows by notification, first the batch that registry partitioned, then what waited of it. */
  return async (
    projectId: ProjectId,
    notifications: readonly Located[],
    id: DeviceId,
  ): Promise<Map<NotificationId, DeviceRow[]>> => {
    const embedded = notifications.flatMap((document) => find(rowsOf(document), id));
    const batches: string[] = [];
    for (const document of notifications.filter(({ rows }) => !rows))
      batches.push(...(batchesOf(document, id) ?? (await search(projectId, document._id, id))));
    // One `$in`: DocumentDB takes 100 ms for each of several ranges in an `$or`.
    const filter = { projectId, _id: { $in: batches }, firstDeviceId: { $lte: id }, lastDeviceId: { $gte: id } };
    const stored =
      batches.length === 0
        ? []
        : find(await deliveries.find(filter, { hint: "_id_", batchSize: batches.length + 1 }).toArray(), id);
    const children = await Promise.all(stored.filter(isDeferred).map(({ row }) => childrenOf(projectId, row)));
    const all = [...embedded, ...stored, ...find(children.flat(), id)];
    return Map.groupBy(
      all.toSorted((one, other) => one.row.generation - other.row.generation),
      ({ row }) => row.notificationId,
    );
  };
};
