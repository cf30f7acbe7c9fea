import type { DeviceId, NotificationId, ProjectId, Tag } from "@herald/contracts";
import { guardStore } from "@herald/mongo";
import type { Db } from "mongodb";
import { rootGeneration } from "../domain/batch-ids.ts";
import { deliveryCollection, deliveryHints, ownersOf } from "./delivery-document.ts";
import { findEmbeddedRows } from "./embedded-rows.ts";
import { notificationCollection } from "./notification-document.ts";
import { packedAt } from "./packed-ids.ts";

/** Batches that are looked through for the users of some devices: up to eight thousand devices. Larger audiences are left out. */
const maxBatches = 16;

export type DeliveryOf = { readonly notificationId: NotificationId; readonly deviceId: DeviceId };

/** Whose devices were when they were sent to. */
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
    notifications
      .find(
        { projectId, _id: { $in: [...ids] } },
        { hint: "_id_", projection: { "expanded.batches": 1, tags: 1 }, batchSize: ids.length + 1 },
      )
      .toArray();

  /** Those whose audience is small enough to be looked through. */
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
    /** `users` in their order; null: no user, or a large audience. `tags` of those notifications that have any. */
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

export type DeliveryUsers = ReturnType<typeof createDeliveryUsers>;
