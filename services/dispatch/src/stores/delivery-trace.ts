import type { Delivery, DeliveryAttempt, DeviceId, NotificationId, ProjectId } from "@herald/contracts";
import { guardStore } from "@herald/mongo";
import type { Db, WithId } from "mongodb";
import { deliveryAttempts, type Step } from "../domain/delivery-attempts.ts";
import { type DeliveryDocument, ownersOf } from "./delivery-document.ts";
import { deliveriesOf, type ProviderIdOf } from "./delivery-list.ts";
import { type DeviceRow, findDeviceRows, locatedFields } from "./device-rows.ts";
import { notificationCollection } from "./notification-document.ts";
import { packedAt } from "./packed-ids.ts";

export type Trace = {
  readonly delivery?: Delivery;
  readonly attempts: readonly DeliveryAttempt[];
  readonly nextAttemptAt?: Date;
};

type Row = WithId<DeliveryDocument>;

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

/** What the rows of a device say of it, first the batch that registry partitioned. */
export const traceOf = (rows: readonly DeviceRow[], providerIdOf: ProviderIdOf): Trace => {
  const steps: Step[] = [];
  let delivery: Delivery | undefined;
  for (const { row, index } of rows) {
    const known = deliveriesOf(row, providerIdOf)(index);
    steps.push(...stepsOf(row, index, known?.provider_id));
    delivery = known ?? pendingDelivery(row, index);
  }
  return { ...(delivery && { delivery }), ...deliveryAttempts(steps) };
};

/** Finds one device in the ledger of a notification. */
export const createDeliveryTrace = (db: Db, providerIdOf: ProviderIdOf) => {
  const notifications = notificationCollection(db);
  const deviceRows = findDeviceRows(db);
  return guardStore({
    /** Its attempts, oldest first, from the batch that registry partitioned and from what waited of it. */
    trace: async (projectId: ProjectId, notificationId: NotificationId, id: DeviceId): Promise<Trace> => {
      const found = await notifications.findOne({ _id: notificationId, projectId }, { projection: locatedFields });
      const rows = found ? await deviceRows(projectId, [found], id) : undefined;
      return traceOf(rows?.get(notificationId) ?? [], providerIdOf);
    },
  });
};

export type DeliveryTrace = ReturnType<typeof createDeliveryTrace>;
