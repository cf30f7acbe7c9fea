import {
  type Delivery,
  type DeliveryStatus,
  type NotificationId,
  type PageOf,
  type PageRequest,
  type ProjectId,
  type Provider,
  servingProvider,
} from "@herald/contracts";
import { deadlineOptions, decodeAfter, encodeAfter, guardStore } from "@herald/mongo";
import type { Db, WithId } from "mongodb";
import { skippedOf } from "../domain/counts.ts";
import { type DeliveryDocument, deliveryCollection, deliveryHints, ownersOf } from "./delivery-document.ts";
import { findEmbeddedRows } from "./embedded-rows.ts";
import { packedAt, packedCount } from "./packed-ids.ts";
import { unpackNames } from "./packed-names.ts";

/** A row without its devices: what a list must know to pass it over. */
type LightRow = Pick<WithId<DeliveryDocument>, "_id" | "firstDeviceId" | "state" | "tally">;

/** Where a device stands: its row, and its place in there. */
type Position = { readonly firstDeviceId: string; readonly rowId: string; readonly index: number };

const light = { firstDeviceId: 1, state: 1, tally: 1 } as const;
const lightRowsAtATime = 200;

/** The provider's id of a message, where it follows from what Herald knows. */
export type ProviderIdOf = (provider: Provider, notificationId: NotificationId, deviceId: string) => string | undefined;

/** The ledger of one notification as a list of devices, ordered by batch and within it by id. */
export const createDeliveryList = (db: Db, providerIdOf: ProviderIdOf) => {
  const deliveries = deliveryCollection(db);
  const embeddedRows = findEmbeddedRows(db);

  /** The rows in their order; those that the notification carries are a few, and whole already. */
  async function* lightRows(
    projectId: ProjectId,
    notificationId: NotificationId,
    from = "",
  ): AsyncGenerator<LightRow | DeliveryDocument> {
    const embedded = await embeddedRows(projectId, [notificationId]);
    const sorted = embedded.toSorted((one, other) => (placeOf(one) < placeOf(other) ? -1 : 1));
    yield* sorted.filter(({ firstDeviceId }) => firstDeviceId >= from);
    if (embedded.length > 0) return;
    yield* deliveries
      .find(
        { projectId, notificationId, ...(from === "" ? {} : { firstDeviceId: { $gte: from } }) },
        { hint: deliveryHints.devices, projection: light, ...deadlineOptions() },
      )
      .sort({ firstDeviceId: 1, _id: 1 })
      .batchSize(lightRowsAtATime);
  }

  const devicesOf = async (
    projectId: ProjectId,
    known: LightRow | DeliveryDocument,
    status: DeliveryStatus | undefined,
  ) => {
    const id = known._id;
    const row = "deviceIds" in known ? known : await deliveries.findOne({ _id: id, projectId });
    if (!row) return [];
    const all: { delivery: Delivery; position: Position }[] = [];
    const deliveryAt = deliveriesOf(row, providerIdOf);
    for (let index = 0; index < packedCount(row.deviceIds); index++) {
      const delivery = deliveryAt(index);
      if (delivery && (status === undefined || delivery.status === status))
        all.push({ delivery, position: { firstDeviceId: row.firstDeviceId, rowId: id, index } });
    }
    return all;
  };

  const byPage = async (
    { projectId, notificationId, status }: Query,
    { page, perPage }: Extract<PageRequest, { by: "page" }>,
  ): Promise<PageOf<Delivery>> => {
    const skip = (page - 1) * perPage;
    const data: Delivery[] = [];
    let count = 0;
    for await (const row of lightRows(projectId, notificationId)) {
      const before = count;
      count += matching(row, status);
      if (count <= skip || data.length >= perPage) continue;
      const devices = await devicesOf(projectId, row, status);
      const from = Math.max(0, skip - before);
      data.push(...devices.slice(from, from + perPage - data.length).map(({ delivery }) => delivery));
    }
    const pages = Math.max(1, Math.ceil(count / perPage));
    const shown = { from: data.length === 0 ? 0 : skip + 1, to: data.length === 0 ? 0 : skip + data.length };
    return { data, pagination: { count, page, pages, ...shown, last: pages } };
  };

  const byKey = async (
    { projectId, notificationId, status }: Query,
    { after, perPage }: Extract<PageRequest, { by: "key" }>,
  ): Promise<PageOf<Delivery>> => {
    const start = parsePosition(decodeAfter(after));
    const found: { delivery: Delivery; position: Position }[] = [];
    for await (const row of lightRows(projectId, notificationId, start?.firstDeviceId)) {
      const sameFirst = start !== undefined && row.firstDeviceId === start.firstDeviceId;
      if (matching(row, status) === 0 || (sameFirst && row._id < start.rowId)) continue;
      const devices = await devicesOf(projectId, row, status);
      const past = sameFirst && row._id === start.rowId ? start.index : -1;
      found.push(...devices.filter(({ position }) => position.index > past));
      if (found.length > perPage) break;
    }
    const shown = found.slice(0, perPage);
    const last = shown.at(-1);
    return {
      data: shown.map(({ delivery }) => delivery),
      next: found.length > perPage && last ? encodeAfter(formatPosition(last.position)) : null,
    };
  };

  return guardStore({
    /** A page of the devices' deliveries. @throws HeraldError `validation-failed` for an `after` that was not given out. */
    list: (query: Query, request: PageRequest): Promise<PageOf<Delivery>> =>
      request.by === "page" ? byPage(query, request) : byKey(query, request),
  });
};

type Query = {
  readonly projectId: ProjectId;
  readonly notificationId: NotificationId;
  readonly status?: DeliveryStatus | undefined;
};

export type DeliveryList = ReturnType<typeof createDeliveryList>;

const isSettled = ({ state }: Pick<DeliveryDocument, "state">) => state === "final" || state === "settled";

/** How many devices of a row have the status; without one, all that are counted in it. */
const matching = (row: LightRow, status: DeliveryStatus | undefined): number => {
  if (status === undefined) return row.tally.devices;
  if (status === "pending") return isSettled(row) ? 0 : row.tally.devices;
  return status === "skipped" ? skippedOf(row.tally) : row.tally[status];
};

/** The deliveries of a row's devices by index; undefined for a device that continues in the row's child. */
export const deliveriesOf = (
  row: WithId<DeliveryDocument>,
  providerIdOf: ProviderIdOf,
): ((index: number) => Delivery | undefined) => {
  const names = row.providerIds === undefined ? [] : unpackNames(row.providerIds);
  const owners = ownersOf(row);
  return (index) => {
    const delivery = deliveryAt(row, index, (...which) => names[index] ?? providerIdOf(...which));
    const owner = owners[index];
    return delivery && owner !== undefined ? { ...delivery, user_id: owner } : delivery;
  };
};

const deliveryAt = (row: WithId<DeliveryDocument>, index: number, providerIdOf: ProviderIdOf): Delivery | undefined => {
  const deviceId = packedAt(row.deviceIds, index);
  const common = { device_id: deviceId, platform: row.platform, at: (row.settledAt ?? row.storedAt).toISOString() };
  if (!isSettled(row)) {
    const { attempts = 0, repeat = false } = row.devices?.[index] ?? {};
    return { ...common, status: "pending", attempts, possible_repeat: repeat };
  }
  const result = row.results?.[row.resultOf?.value()[index] ?? 0];
  if (!result || result.status === "deferred") return undefined;
  const { status, reason, providerReason, attempts, possibleRepeat } = result;
  const providerId = attempts > 0 ? providerIdOf(servingProvider(row), row.notificationId, deviceId) : undefined;
  return {
    ...common,
    status,
    ...(reason === undefined ? {} : { reason }),
    ...(providerReason === undefined ? {} : { provider_reason: providerReason }),
    ...(providerId === undefined ? {} : { provider_id: providerId }),
    attempts,
    possible_repeat: possibleRepeat,
  };
};

const placeOf = ({ firstDeviceId, _id }: LightRow): string => `${firstDeviceId} ${_id}`;

const formatPosition = ({ firstDeviceId, rowId, index }: Position): string => `${firstDeviceId} ${rowId} ${index}`;

const parsePosition = (key: string | undefined): Position | undefined => {
  if (key === undefined) return undefined;
  const [firstDeviceId = "", rowId = "", index = ""] = key.split(" ");
  return { firstDeviceId, rowId, index: Number(index) };
};
