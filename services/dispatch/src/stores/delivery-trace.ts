import {
  type Delivery,
  type DeliveryAttempt,
  type DeviceId,
  deviceBucket,
  type NotificationId,
  type ProjectId,
  type Tag,
} from "@herald/contracts";
import { findByIds, guardStore } from "@herald/mongo";
import type { Db, WithId } from "mongodb";
import { rootGeneration } from "../domain/batch.ts";
import type { DeviceResult } from "../domain/settle-batch.ts";
import {
  type DeliveryDocument,
  deliveryCollection,
  deliveryHints,
  ownersOf,
  packedAt,
  packedCount,
} from "./delivery-document.ts";
import { deliveriesOf, isDeferred, resultAt } from "./delivery-list.ts";
import { type NotificationDocument, notificationCollection } from "./notification-document.ts";
import { carriedFields, findEmbeddedRows, rowsOf } from "./small-send-store.ts";

type Row = WithId<DeliveryDocument>;

/** A ledger row that contains the device, and the device's index there. */
export type DeviceRow = { readonly row: Row; readonly index: number };

/** The fields of a notification that locate a device in its ledger. */
export type Located = Pick<NotificationDocument, "_id" | "projectId" | "rows" | "claim"> & {
  readonly expanded?: Omit<NonNullable<NotificationDocument["expanded"]>, "devices" | "unmatched">;
};

export const locatedFields = {
  ...carriedFields,
  "expanded.batches": 1,
  "expanded.lost": 1,
  "expanded.at": 1,
  "expanded.pages": 1,
} as const;

/** Each row has up to 1,000 devices. The id ranges of a broadcast's rows overlap, so a search may read many rows. */
const rowsAtATime = 50;

const indexOf = ({ deviceIds }: Pick<Row, "deviceIds">, id: DeviceId): number => {
  for (let at = 0; at < packedCount(deviceIds); at++) if (packedAt(deviceIds, at) === id) return at;
  return -1;
};

const find = (rows: readonly Row[], id: DeviceId): DeviceRow[] =>
  rows.map((row) => ({ row, index: indexOf(row, id) })).filter(({ index }) => index >= 0);

/**
 * The ids of the batches that may contain the device: the batches of its page. Undefined when any batch may contain it: while the
 * notification is being expanded, or after a lost expansion.
 */
export const batchesOf = ({ _id, expanded }: Located, id: DeviceId): string[] | undefined => {
  if (expanded?.lost) return undefined;
  // A small send has a single page.
  const pages = expanded?.at ? expanded.pages : expanded && { buckets: Number.POSITIVE_INFINITY, ...expanded };
  if (!pages) return undefined;
  const page = Math.floor(deviceBucket(id) / pages.buckets);
  return Array.from({ length: pages.batches }, (_, n) => `${_id}/${page}/${n}`);
};

/** Finds a device in the ledgers of notifications. */
export const findDeviceRows = (db: Db) => {
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
      { hint: deliveryHints.devices, projection: { deviceIds: 1 }, batchSize: rowsAtATime },
    );
    for await (const row of candidates) if (indexOf(row, id) >= 0) return [row._id];
    return [];
  };

  const childrenOf = (projectId: ProjectId, { _id }: Row): Promise<Row[]> =>
    // `0` is the character after `/`.
    deliveries.find({ projectId, _id: { $gt: `${_id}/`, $lt: `${_id}0` } }, { hint: "_id_" }).toArray();

  /** The device's rows by notification: first the root row, then its children. */
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
    const filter = { projectId, firstDeviceId: { $lte: id }, lastDeviceId: { $gte: id } };
    const stored = batches.length === 0 ? [] : find(await findByIds(deliveries, batches, filter), id);
    const children = await Promise.all(
      stored.filter(({ row, index }) => isDeferred(row, index)).map(({ row }) => childrenOf(projectId, row)),
    );
    const all = [...embedded, ...stored, ...find(children.flat(), id)];
    return Map.groupBy(
      all.toSorted((one, other) => one.row.generation - other.row.generation),
      ({ row }) => row.notificationId,
    );
  };
};

/** The attempts of a device before a row, and whether one of them may have reached it. */
type Known = { readonly attempts: number; readonly repeat: boolean };

/** The attempt of a settled row. Undefined when the device only waited there. */
const settledAttempt = (
  { attempts, repeat }: Known,
  at: string,
  { status, reason, providerReason, possibleRepeat, ...result }: DeviceResult,
  providerId: string | undefined,
): DeliveryAttempt | undefined => {
  const sent = result.attempts > attempts;
  // It waited for its server, or for new settings after the provider had refused an earlier row.
  if (status === "deferred" && !sent && providerReason === undefined) return undefined;
  const unanswered = possibleRepeat && !repeat;
  const waits = result.blocked ? "held" : "paused";
  return {
    attempt: attempts + 1,
    at,
    outcome: status !== "deferred" ? status : !sent ? waits : unanswered ? "unknown" : "deferred",
    ...(reason !== undefined && { reason }),
    ...(providerReason !== undefined && { provider_reason: providerReason }),
    ...(providerId !== undefined && { provider_id: providerId }),
    possible_repeat: possibleRepeat,
  };
};

/** The delivery of a device, its attempts, oldest first, and the time of the next attempt, from its rows, root row first. */
export const traceOf = (rows: readonly DeviceRow[]) => {
  const attempts: DeliveryAttempt[] = [];
  let known: Known = { attempts: 0, repeat: false };
  let delivery: Delivery | undefined;
  let nextAttemptAt: Date | undefined;
  for (const { row, index } of rows) {
    delivery = deliveriesOf(row)(index);
    const result = resultAt(row, index);
    // A settled row has `child` until that has a row of its own.
    nextAttemptAt = row.state === "waiting" ? row.dueAt : result?.status === "deferred" ? row.child?.dueAt : undefined;
    if (row.state === "started") {
      const at = (row.startedAt ?? row.storedAt).toISOString();
      const possibleRepeat = row.devices?.[index]?.repeat ?? false;
      attempts.push({ attempt: known.attempts + 1, at, outcome: "sending", possible_repeat: possibleRepeat });
    }
    if (!result) continue;
    const attempt = settledAttempt(known, delivery.at, result, delivery.provider_id);
    if (attempt) attempts.push(attempt);
    known = { attempts: result.attempts, repeat: result.possibleRepeat };
  }
  return { ...(delivery && { delivery }), attempts, ...(nextAttemptAt && { nextAttemptAt }) };
};

/** Finds one device in the ledger of a notification. */
export const createDeliveryTrace = (db: Db) => {
  const notifications = notificationCollection(db);
  const deviceRows = findDeviceRows(db);
  return guardStore({
    /** The delivery of a device and its attempts, oldest first, from the root row and its children. */
    trace: async (projectId: ProjectId, notificationId: NotificationId, id: DeviceId) => {
      const found = await notifications.findOne({ _id: notificationId, projectId }, { projection: locatedFields });
      const rows = found ? await deviceRows(projectId, [found], id) : undefined;
      return traceOf(rows?.get(notificationId) ?? []);
    },
  });
};

/** The largest audience, in batches, that is searched for the users of devices: up to 16,000 devices. Larger audiences are skipped. */
const maxBatches = 16;

export type DeliveryOf = { readonly notificationId: NotificationId; readonly deviceId: DeviceId };

/** Finds the users that devices had when a notification was sent to them. */
export const createDeliveryUsers = (db: Db) => {
  const notifications = notificationCollection(db);
  const deliveries = deliveryCollection(db);
  const embeddedRows = findEmbeddedRows(db);

  const isSmall = async (projectId: ProjectId, notificationId: NotificationId): Promise<boolean> => {
    const filter = { projectId, notificationId, generation: rootGeneration };
    const options = { hint: deliveryHints.finish, limit: maxBatches + 1 };
    return (await deliveries.countDocuments(filter, options)) <= maxBatches;
  };

  const findNotifications = (projectId: ProjectId, ids: readonly NotificationId[]) =>
    findByIds(notifications, ids, { projectId }, { projection: { "expanded.batches": 1, tags: 1 } });

  /** The notifications whose audience is small enough to search. */
  const smallOnes = async (
    projectId: ProjectId,
    found: Awaited<ReturnType<typeof findNotifications>>,
  ): Promise<NotificationId[]> => {
    const small = found.map(async ({ _id, expanded }) =>
      (expanded ? expanded.batches <= maxBatches : await isSmall(projectId, _id)) ? [_id] : [],
    );
    return (await Promise.all(small)).flat();
  };

  return guardStore({
    /** `users` in the order of `asked`; null: no user, or a large audience. `tags` by notification, only for notifications with tags. */
    usersOf: async (
      projectId: ProjectId,
      asked: readonly DeliveryOf[],
    ): Promise<{ users: (string | null)[]; tags: Record<string, Tag[]> }> => {
      const found = await findNotifications(projectId, [...new Set(asked.map(({ notificationId }) => notificationId))]);
      const ids = await smallOnes(projectId, found);
      const filter = { projectId, notificationId: { $in: ids }, users: { $exists: true }, generation: rootGeneration };
      const projection = { notificationId: 1, deviceIds: 1, users: 1 } as const;
      const rows = await Promise.all([
        embeddedRows(projectId, ids),
        deliveries.find(filter, { hint: deliveryHints.devices, projection, batchSize: 10_000 }).toArray(),
      ]);
      const users = new Map<string, string>();
      for (const row of rows.flat())
        for (const [at, user] of ownersOf(row).entries())
          if (user !== undefined) users.set(`${row.notificationId}/${packedAt(row.deviceIds, at)}`, user);
      return {
        users: asked.map(({ notificationId, deviceId }) => users.get(`${notificationId}/${deviceId}`) ?? null),
        tags: Object.fromEntries(found.flatMap(({ _id, tags }) => (tags ? [[_id, tags]] : []))),
      };
    },
  });
};
