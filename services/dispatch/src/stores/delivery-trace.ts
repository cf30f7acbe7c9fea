import type { Delivery, DeliveryAttempt, DeviceId, NotificationId, ProjectId } from "@herald/contracts";
import { guardStore } from "@herald/mongo";
import type { Db, WithId } from "mongodb";
import { rootGeneration } from "../domain/batch-ids.ts";
import { deliveryAttempts, type Step } from "../domain/delivery-attempts.ts";
import { type DeliveryDocument, deliveryCollection, deliveryHints, ownersOf } from "./delivery-document.ts";
import { deliveriesOf, type ProviderIdOf } from "./delivery-list.ts";
import { findEmbeddedRows } from "./embedded-rows.ts";
import { packedAt, packedCount } from "./packed-ids.ts";

export type Trace = {
  readonly delivery?: Delivery;
  readonly attempts: readonly DeliveryAttempt[];
  readonly nextAttemptAt?: Date;
};

/** Of up to 1,000 devices each: a broadcast's rows overlap, so many may have to be looked through. */
const rowsAtATime = 50;

type Row = WithId<DeliveryDocument>;

const placeOf = ({ deviceIds }: Pick<Row, "deviceIds">, id: DeviceId): number => {
  for (let at = 0; at < packedCount(deviceIds); at++) if (packedAt(deviceIds, at) === id) return at;
  return -1;
};

const stepsOf = (row: Row, at: number, providerId: string | undefined): Step[] => {
  if (row.state === "started")
    return [{ kind: "started", at: row.startedAt ?? row.storedAt, repeat: row.devices?.[at]?.repeat ?? false }];
  if (row.state === "waiting") return row.dueAt ? [{ kind: "waiting", dueAt: row.dueAt }] : [];
  const result = row.results?.[row.resultOf?.value()[at] ?? 0];
  if (!result) return [];
  const settled: Step = { kind: "settled", at: row.settledAt ?? row.storedAt, result, providerId };
  // Its child has no row yet.
  return result.status === "deferred" && row.child ? [settled, { kind: "waiting", dueAt: row.child.dueAt }] : [settled];
};

/** A device that waits while its child has no row yet: without this it would seem to be in no batch. */
const pendingDelivery = (row: Row, at: number): Delivery => {
  const { attempts = 0, possibleRepeat = false } = row.results?.[row.resultOf?.value()[at] ?? 0] ?? {};
  const owner = ownersOf(row)[at];
  return {
    device_id: packedAt(row.deviceIds, at),
    ...(owner !== undefined && { user_id: owner }),
    platform: row.platform,
    status: "pending",
    attempts,
    possible_repeat: possibleRepeat,
    at: (row.settledAt ?? row.storedAt).toISOString(),
  };
};

/** Finds one device in the ledger of a notification. */
export const createDeliveryTrace = (db: Db, providerIdOf: ProviderIdOf) => {
  const deliveries = deliveryCollection(db);
  const embeddedRows = findEmbeddedRows(db);

  const rootOf = async (projectId: ProjectId, notificationId: NotificationId, id: DeviceId) => {
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
    for await (const row of candidates) if (placeOf(row, id) >= 0) return row._id;
    return undefined;
  };

  const storedRows = async (projectId: ProjectId, notificationId: NotificationId, id: DeviceId): Promise<Row[]> => {
    const root = await rootOf(projectId, notificationId, id);
    if (root === undefined) return [];
    return deliveries
      .find({ projectId, $or: [{ _id: root }, { _id: { $gt: `${root}/`, $lt: `${root}0` } }] }, { hint: "_id_" })
      .toArray();
  };

  return guardStore({
    /** Its attempts, oldest first, from the batch that registry partitioned and from what waited of it. */
    trace: async (projectId: ProjectId, notificationId: NotificationId, id: DeviceId): Promise<Trace> => {
      const embedded = await embeddedRows(projectId, [notificationId]);
      const rows = embedded.length > 0 ? embedded : await storedRows(projectId, notificationId, id);
      const steps: Step[] = [];
      let delivery: Delivery | undefined;
      for (const row of rows.toSorted((one, other) => one.generation - other.generation)) {
        const at = placeOf(row, id);
        if (at < 0) continue;
        const known = deliveriesOf(row, providerIdOf)(at);
        steps.push(...stepsOf(row, at, known?.provider_id));
        delivery = known ?? pendingDelivery(row, at);
      }
      return { ...(delivery && { delivery }), ...deliveryAttempts(steps) };
    },
  });
};

export type DeliveryTrace = ReturnType<typeof createDeliveryTrace>;
