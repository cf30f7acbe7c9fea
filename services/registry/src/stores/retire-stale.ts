import type { DeviceId, EventData, ProjectId } from "@herald/contracts";
import { indexName } from "@herald/mongo";
import type { Collection, Filter } from "mongodb";
import type { EventContext } from "../domain/registry-events.ts";
import { type DeviceDocument, deviceIndexes } from "./device-document.ts";

/** Devices from before there was a time of the last sign of life have that of their last change. */
const silentSince = (before: Date): Filter<DeviceDocument> => ({
  $or: [{ lastSeenAt: { $lt: before } }, { lastSeenAt: { $exists: false }, updatedAt: { $lt: before } }],
});

export const retireStale = (devices: Collection<DeviceDocument>) => ({
  /** Some active devices that were last seen before `before`, by id. */
  findStale: async (
    projectId: ProjectId,
    { before, after = "" as DeviceId, limit }: { before: Date; after?: DeviceId | undefined; limit: number },
  ): Promise<DeviceId[]> => {
    const found = await devices
      .find(
        { projectId, status: "active", _id: { $gt: after }, ...silentSince(before) },
        {
          hint: indexName(deviceIndexes.status),
          sort: { _id: 1 },
          limit,
          projection: { _id: 1 },
          batchSize: limit + 1,
        },
      )
      .toArray();
    return found.map(({ _id }) => _id);
  },

  /** Deactivates those of the devices that are still silent, each with its event. Resolves to how many. */
  retireStale: async (
    { projectId, at, newId }: EventContext,
    ids: readonly DeviceId[],
    before: Date,
  ): Promise<number> => {
    const outboxEvent = {
      id: { $concat: [{ $literal: `${newId()}/` }, "$_id"] },
      event: { $literal: "DeviceDeactivatedV1" },
      subject: "$_id",
      at,
      data: {
        project_id: { $literal: projectId },
        device_id: "$_id",
        reason: { $literal: "stale" },
        at: { $literal: at.toISOString() },
      } satisfies Record<keyof EventData<"DeviceDeactivatedV1">, unknown>,
    };
    const { modifiedCount } = await devices.updateMany(
      { projectId, _id: { $in: [...ids].sort() }, status: "active", ...silentSince(before) },
      [
        {
          $set: {
            status: "inactive",
            inactiveReason: "stale",
            inactiveAt: at,
            updatedAt: at,
            version: { $add: ["$version", 1] },
            outbox: { $concatArrays: [{ $ifNull: ["$outbox", []] }, [outboxEvent]] },
          },
        },
      ],
    );
    return modifiedCount;
  },
});
