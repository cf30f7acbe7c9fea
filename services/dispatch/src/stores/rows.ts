import { bucketOf, type DeviceId, type NotificationId, type ProjectId } from "@herald/contracts";
import { deadlineOptions, findByIds } from "@herald/mongo";
import type { Db, WithId } from "mongodb";
import { rootGeneration } from "../domain/batch.ts";
import {
  type DeliveryDocument,
  deliveryCollection,
  deliveryHints,
  packedAt,
  packedCount,
  resultAt,
} from "./delivery-document.ts";
import { type NotificationDocument, notificationCollection } from "./notification-document.ts";

/**
 * The rows of a notification are in one of two places: in the notification of a small send, or in `deliveries`. `small-send-store.ts`
 * writes and moves them; all reads are here.
 */
export type Row = WithId<DeliveryDocument>;

/** The fields of a notification that locate its rows. */
export type RowSource = Pick<NotificationDocument, "_id" | "projectId" | "rows" | "claim" | "tags"> & {
  readonly expanded?: Omit<NonNullable<NotificationDocument["expanded"]>, "devices" | "unmatched">;
};

export const rowSourceFields = {
  projectId: 1,
  rows: 1,
  claim: 1,
  "expanded.batches": 1,
  "expanded.lost": 1,
  "expanded.at": 1,
  "expanded.pages": 1,
} as const;

/** The rows stored in a notification, as documents of `deliveries`. */
export const embeddedRows = ({ _id, projectId, rows = [], claim, tags }: RowSource): DeliveryDocument[] =>
  rows.map((row) => ({
    ...row,
    projectId,
    notificationId: _id,
    lane: "direct",
    generation: rootGeneration,
    starts: 1,
    ...(tags && { tags }),
    ...(claim && { claim: { at: claim.at, sequence: claim.sequence } }),
  }));

/** A row without its devices: enough for a list to skip it. */
export type LightRow = Pick<Row, "_id" | "firstDeviceId" | "state" | "tally">;

const light = { firstDeviceId: 1, state: 1, tally: 1 } as const;
const lightRowsAtATime = 200;
/** Each row has up to 1,000 devices. */
const rowsAtATime = 10;
/** The id ranges of a broadcast's rows overlap, so a search may read many rows. */
const searchedAtATime = 50;

/** A ledger row that contains a device, and the device's index there. */
export type DeviceRow = { readonly row: Row; readonly index: number };

const indexOf = ({ deviceIds }: Pick<Row, "deviceIds">, id: DeviceId): number => {
  for (let at = 0; at < packedCount(deviceIds); at++) if (packedAt(deviceIds, at) === id) return at;
  return -1;
};

const withDevice = (rows: readonly Row[], id: DeviceId): DeviceRow[] =>
  rows.map((row) => ({ row, index: indexOf(row, id) })).filter(({ index }) => index >= 0);

/**
 * The ids of the batches that may contain the device: the batches of its page. Undefined when any batch may contain it: while the
 * notification is being expanded, or after a lost expansion.
 */
const batchesWith = ({ _id, expanded }: RowSource, id: DeviceId): string[] | undefined => {
  if (expanded?.lost) return undefined;
  // A small send has a single page.
  const pages = expanded?.at ? expanded.pages : expanded && { buckets: Number.POSITIVE_INFINITY, ...expanded };
  if (!pages) return undefined;
  const page = Math.floor(bucketOf(id) / pages.buckets);
  return Array.from({ length: pages.batches }, (_, n) => `${_id}/${page}/${n}`);
};

/** Whether all batches of a notification must be searched for a device. Searching them reads several megabytes. */
export const isSearched = (source: RowSource, id: DeviceId): boolean => !source.rows && !batchesWith(source, id);

export const createRows = (db: Db) => {
  const notifications = notificationCollection(db);
  const deliveries = deliveryCollection(db);

  /** Searches all batches whose range of device ids includes the device. */
  const search = async (projectId: ProjectId, notificationId: NotificationId, id: DeviceId): Promise<string[]> => {
    const candidates = deliveries.find(
      {
        projectId,
        notificationId,
        firstDeviceId: { $lte: id },
        lastDeviceId: { $gte: id },
        generation: rootGeneration,
      },
      { hint: deliveryHints.devices, projection: { deviceIds: 1 }, batchSize: searchedAtATime },
    );
    for await (const row of candidates) if (indexOf(row, id) >= 0) return [row._id];
    return [];
  };

  const childrenOf = (projectId: ProjectId, { _id }: Row): Promise<Row[]> =>
    // `0` is the character after `/`.
    deliveries.find({ projectId, _id: { $gt: `${_id}/`, $lt: `${_id}0` } }, { hint: "_id_" }).toArray();

  return {
    /** Where the rows of a notification are. Null when the project has no such notification. */
    sourceOf: (projectId: ProjectId, _id: NotificationId): Promise<RowSource | null> =>
      notifications.findOne({ _id, projectId }, { projection: rowSourceFields }),

    /** The rows of a notification from the id `first` on, in order of their ids. */
    async *rowsOf(source: RowSource, first = ""): AsyncGenerator<Row> {
      const { _id, projectId, rows } = source;
      if (rows) {
        const embedded = embeddedRows(source).filter(({ _id: id }) => id >= first);
        return yield* embedded.sort((one, other) => (one._id < other._id ? -1 : 1));
      }
      // `0` is the character after `/`.
      const range = { _id: { $gte: first > _id ? first : `${_id}/`, $lt: `${_id}0` }, projectId };
      yield* deliveries
        .find(range, { hint: "_id_", ...deadlineOptions() })
        .sort({ _id: 1 })
        .batchSize(rowsAtATime);
    },

    /** The same from the device `first` on, in order of their first devices, without their devices where there are many rows. */
    async *lightRowsOf(source: RowSource, first = ""): AsyncGenerator<LightRow | Row> {
      const { _id: notificationId, projectId, rows } = source;
      if (rows) {
        const placeOf = ({ firstDeviceId, _id }: LightRow): string => `${firstDeviceId} ${_id}`;
        const embedded = embeddedRows(source).filter(({ firstDeviceId }) => firstDeviceId >= first);
        return yield* embedded.sort((one, other) => (placeOf(one) < placeOf(other) ? -1 : 1));
      }
      const from = first === "" ? {} : { firstDeviceId: { $gte: first } };
      yield* deliveries
        .find(
          { projectId, notificationId, ...from },
          { hint: deliveryHints.devices, projection: light, ...deadlineOptions() },
        )
        .sort({ firstDeviceId: 1, _id: 1 })
        .batchSize(lightRowsAtATime);
    },

    /** The whole row. Null when it was removed meanwhile. */
    whole: async (projectId: ProjectId, row: LightRow | Row): Promise<Row | null> =>
      "deviceIds" in row ? row : deliveries.findOne({ _id: row._id, projectId }),

    /** The rows of a device by notification: first the root row, then its children. */
    rowsOfDevice: async (
      projectId: ProjectId,
      sources: readonly RowSource[],
      id: DeviceId,
    ): Promise<Map<NotificationId, DeviceRow[]>> => {
      const embedded = sources.flatMap((source) => withDevice(embeddedRows(source), id));
      const batches: string[] = [];
      for (const source of sources.filter(({ rows }) => !rows))
        batches.push(...(batchesWith(source, id) ?? (await search(projectId, source._id, id))));
      // One `$in`: DocumentDB takes 100 ms for each of several ranges in an `$or`.
      const filter = { projectId, firstDeviceId: { $lte: id }, lastDeviceId: { $gte: id } };
      const stored = batches.length === 0 ? [] : withDevice(await findByIds(deliveries, batches, filter), id);
      const deferred = stored.filter(({ row, index }) => resultAt(row, index)?.status === "deferred");
      const children = await Promise.all(deferred.map(({ row }) => childrenOf(projectId, row)));
      const all = [...embedded, ...stored, ...withDevice(children.flat(), id)];
      return Map.groupBy(
        all.toSorted((one, other) => one.row.generation - other.row.generation),
        ({ row }) => row.notificationId,
      );
    },

    /** The root rows of notifications that name users. */
    rowsWithUsers: async (
      projectId: ProjectId,
      ids: readonly NotificationId[],
    ): Promise<Pick<Row, "notificationId" | "deviceIds" | "users">[]> => {
      const filter = {
        projectId,
        notificationId: { $in: [...ids] },
        users: { $exists: true },
        generation: rootGeneration,
      };
      const projection = { notificationId: 1, deviceIds: 1, users: 1 } as const;
      const [sources, stored] = await Promise.all([
        findByIds(notifications, ids, { projectId }, { projection: rowSourceFields }),
        deliveries.find(filter, { hint: deliveryHints.devices, projection, batchSize: 10_000 }).toArray(),
      ]);
      return [...sources.flatMap(embeddedRows), ...stored];
    },

    /** Up to `limit` root rows that are stored: a notification has them all, or fewer while it is being expanded. */
    countRoots: (projectId: ProjectId, notificationId: NotificationId, limit: number): Promise<number> =>
      deliveries.countDocuments(
        { projectId, notificationId, generation: rootGeneration },
        { hint: deliveryHints.finish, limit },
      ),
  };
};
