import {
  type Delivery,
  type DeliveryStatus,
  type ExportedDelivery,
  firstNotificationId,
  type NotificationId,
  type PageOf,
  type PageRequest,
  type ProjectId,
  servingProvider,
} from "@herald/contracts";
import { deadlineOptions, decodeAfter, guardStore, mapPage, pageByKey, paginationOf } from "@herald/mongo";
import type { Db, Filter } from "mongodb";
import { apnsId } from "../domain/batch.ts";
import { skippedOf } from "../domain/notification-counts.ts";
import { type DeliveryDocument, ownersOf, packedAt, packedCount, resultAt, unpackNames } from "./delivery-document.ts";
import { type NotificationDocument, notificationCollection, notificationHints } from "./notification-document.ts";
import { createRows, type LightRow, type Row, rowSourceFields } from "./rows.ts";

/** The ledger of one notification as a list of devices, ordered by batch, then by device id. */
export const createDeliveryList = (db: Db) => {
  const { sourceOf, lightRowsOf, whole } = createRows(db);

  async function* rowsFrom({ projectId, notificationId }: Query, first?: string): AsyncGenerator<LightRow | Row> {
    const source = await sourceOf(projectId, notificationId);
    if (source) yield* lightRowsOf(source, first);
  }

  const devicesOf = async (projectId: ProjectId, known: LightRow | Row, status: DeliveryStatus | undefined) => {
    const id = known._id;
    const row = await whole(projectId, known);
    if (!row) return [];
    const all: { readonly delivery: Delivery; readonly index: number; readonly key: string }[] = [];
    const deliveryAt = deliveriesOf(row);
    for (let index = 0; index < packedCount(row.deviceIds); index++) {
      const delivery = deliveryAt(index);
      if (!isDeferred(row, index) && (status === undefined || delivery.status === status))
        all.push({ delivery, index, key: `${row.firstDeviceId} ${id} ${index}` });
    }
    return all;
  };

  const byPage = async (
    query: Query,
    { page, perPage }: Extract<PageRequest, { by: "page" }>,
  ): Promise<PageOf<Delivery>> => {
    const { projectId, status } = query;
    const skip = (page - 1) * perPage;
    const data: Delivery[] = [];
    let count = 0;
    for await (const row of rowsFrom(query)) {
      const before = count;
      count += matching(row, status);
      if (count <= skip || data.length >= perPage) continue;
      const devices = await devicesOf(projectId, row, status);
      const from = Math.max(0, skip - before);
      data.push(...devices.slice(from, from + perPage - data.length).map(({ delivery }) => delivery));
    }
    return { data, pagination: paginationOf({ count, page, perPage }, data.length) };
  };

  const byKey = async (
    query: Query,
    { after, perPage }: Extract<PageRequest, { by: "key" }>,
  ): Promise<PageOf<Delivery>> => {
    const { projectId, status } = query;
    const start = parsePosition(decodeAfter(after));
    const found: Awaited<ReturnType<typeof devicesOf>> = [];
    for await (const row of rowsFrom(query, start?.firstDeviceId)) {
      const sameFirst = start !== undefined && row.firstDeviceId === start.firstDeviceId;
      if (matching(row, status) === 0 || (sameFirst && row._id < start.rowId)) continue;
      const devices = await devicesOf(projectId, row, status);
      const past = sameFirst && row._id === start.rowId ? start.index : -1;
      found.push(...devices.filter(({ index }) => index > past));
      if (found.length > perPage) break;
    }
    return mapPage(
      pageByKey(found, perPage, ({ key }) => key),
      ({ delivery }) => delivery,
    );
  };

  return guardStore({
    /** A page of the devices' deliveries. @throws HeraldError `validation-failed` for an `after` that Herald did not issue. */
    list: (query: Query, request: PageRequest): Promise<PageOf<Delivery>> =>
      request.by === "page" ? byPage(query, request) : byKey(query, request),
  });
};

type Query = {
  readonly projectId: ProjectId;
  readonly notificationId: NotificationId;
  readonly status?: DeliveryStatus | undefined;
};

const isSettled = ({ state }: Pick<DeliveryDocument, "state">) => state === "final" || state === "settled";

/** How many devices of a row have the status. Without a status: all devices counted in the row. */
const matching = (row: LightRow, status: DeliveryStatus | undefined): number => {
  if (status === undefined) return row.tally.devices;
  if (status === "pending") return isSettled(row) ? 0 : row.tally.devices;
  return status === "skipped" ? skippedOf(row.tally) : row.tally[status];
};

/** Whether a device continues in the row's child. */
export const isDeferred = (row: DeliveryDocument, index: number): boolean =>
  resultAt(row, index)?.status === "deferred";

/** The deliveries of a row's devices by index. A device that continues in the row's child is pending. */
export const deliveriesOf = (row: Row): ((index: number) => Delivery) => {
  const names = row.providerIds === undefined ? [] : unpackNames(row.providerIds);
  const owners = ownersOf(row);
  const provider = servingProvider(row);
  return (index) => {
    const deviceId = packedAt(row.deviceIds, index);
    const owner = owners[index];
    const common = {
      device_id: deviceId,
      ...(owner !== undefined && { user_id: owner }),
      platform: row.platform,
      at: (row.settledAt ?? row.storedAt).toISOString(),
    };
    const result = resultAt(row, index);
    if (!result || result.status === "deferred") {
      const { attempts = 0, repeat = false } = row.devices?.[index] ?? {};
      const known = { attempts: result?.attempts ?? attempts, possible_repeat: result?.possibleRepeat ?? repeat };
      return { ...common, status: "pending", ...known };
    }
    const { status, reason, providerReason, attempts, possibleRepeat, asked } = result;
    const derived = provider === "apns" ? apnsId(row.notificationId, deviceId) : undefined;
    const providerId = attempts > 0 ? (names[index] ?? derived) : undefined;
    return {
      ...common,
      status,
      ...(reason !== undefined && { reason }),
      ...(providerReason !== undefined && { provider_reason: providerReason }),
      ...(providerId !== undefined && { provider_id: providerId }),
      attempts,
      possible_repeat: possibleRepeat,
      ...(asked && { receipt_asked: true }),
    };
  };
};

/** The position of a device: its row and its index in that row. */
const parsePosition = (key: string | undefined) => {
  if (key === undefined) return undefined;
  const [firstDeviceId = "", rowId = "", index = ""] = key.split(" ");
  return { firstDeviceId, rowId, index: Number(index) };
};

type Wanted = {
  readonly projectId: ProjectId;
  /** Absent: all notifications. */
  readonly notificationId?: NotificationId | undefined;
  readonly status?: DeliveryStatus | undefined;
  /** The notification was created at or after this time, and before `createdBefore`. Both are RFC 3339. */
  readonly createdAfter?: string | undefined;
  readonly createdBefore?: string | undefined;
};

/** The last exported device (its row and index), or, without `row`, the last notification whose export is complete. */
type ExportPosition = { readonly id: NotificationId; readonly row?: { readonly id: string; readonly index: number } };

const parseExportPosition = (after: string): ExportPosition => {
  const [rowId = "", index] = after.split(":");
  const id = rowId.split("/")[0] as NotificationId;
  return index === undefined ? { id } : { id, row: { id: rowId, index: Number(index) } };
};

/** Devices and notifications that a page reads at most, including devices whose status does not match. */
const maxLooked = 50_000;
const notificationsAtATime = 200;

/** Reads the ledger of a project or of one notification as pages of devices, ordered by row id. */
export const createDeliveryExport = (db: Db) => {
  const notifications = notificationCollection(db);
  const { rowsOf } = createRows(db);

  const notificationsFrom = (wanted: Wanted, position: ExportPosition | undefined) => {
    const { projectId, notificationId, createdAfter, createdBefore } = wanted;
    const bounds: Filter<NotificationDocument>[] = [{ projectId }];
    if (notificationId) bounds.push({ _id: notificationId });
    if (createdAfter) bounds.push({ _id: { $gte: firstNotificationId(new Date(createdAfter)) } });
    if (createdBefore) bounds.push({ _id: { $lt: firstNotificationId(new Date(createdBefore)) } });
    // A position with a row means that the export of its notification is not complete.
    if (position) bounds.push({ _id: position.row ? { $gte: position.id } : { $gt: position.id } });
    return notifications
      .find({ $and: bounds }, { hint: notificationHints.list, projection: rowSourceFields, ...deadlineOptions() })
      .sort({ _id: 1 })
      .batchSize(notificationsAtATime);
  };

  return guardStore({
    /** Up to `limit` deliveries after the position `after`. `next` is null at the end. */
    exportDeliveries: async (
      wanted: Wanted,
      after: string | undefined,
      limit: number,
    ): Promise<{ rows: ExportedDelivery[]; next: string | null }> => {
      const rows: ExportedDelivery[] = [];
      const start = after === undefined ? undefined : parseExportPosition(after);
      let looked = 0;
      let position = after;
      for await (const document of notificationsFrom(wanted, start)) {
        const begun = start?.id === document._id ? start.row : undefined;
        for await (const row of rowsOf(document, begun?.id)) {
          const deliveryAt = deliveriesOf(row);
          const from = row._id === begun?.id ? begun.index + 1 : 0;
          looked++;
          for (let index = from; index < packedCount(row.deviceIds); index++) {
            looked++;
            position = `${row._id}:${index}`;
            const delivery = deliveryAt(index);
            if (isDeferred(row, index) || (wanted.status !== undefined && delivery.status !== wanted.status)) continue;
            rows.push({ id: position, notification_id: row.notificationId, ...delivery });
            if (rows.length >= limit) return { rows, next: position };
          }
          if (looked >= maxLooked) return { rows, next: position ?? null };
        }
        looked++;
        position = document._id;
        if (looked >= maxLooked) return { rows, next: position };
      }
      return { rows, next: null };
    },
  });
};
