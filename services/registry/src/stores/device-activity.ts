import type { DeviceId, InactiveReason, ProjectId } from "@herald/contracts";
import { createGroupCommit } from "@herald/kit";
import { anyOf, findSome, indexName } from "@herald/mongo";
import type { Collection, Filter } from "mongodb";
import { seenEveryMs } from "../domain/device-state.ts";
import { type EventContext, eventOfEach, registryEvent } from "../domain/registry-events.ts";
import { type DeviceDocument, deviceIndexes } from "./device-document.ts";

export type SeenDevice = { readonly projectId: ProjectId; readonly _id: DeviceId; readonly at: Date };

/** No request waits for these writes, and a command costs the same for one device as for several. */
const groups = { max: 500, concurrent: 1, intervalMs: 250 };

/** Stores the earliest time of all, so that no device gets a time after it was seen. Keeps `version`, so it conflicts with no write. */
const update = async (
  devices: Collection<DeviceDocument>,
  seen: readonly SeenDevice[],
  fields: readonly ("lastSeenAt" | "lastOpenedAt" | "tokenUpdatedAt")[],
  filter: Filter<DeviceDocument> = {},
): Promise<void> => {
  const at = new Date(Math.min(...seen.map((one) => one.at.getTime())));
  await devices.updateMany(
    {
      ...filter,
      _id: anyOf([...new Set(seen.map(({ _id }) => _id))].sort()),
      projectId: anyOf(seen.map(({ projectId }) => projectId)),
      deletedAt: { $exists: false },
    },
    { $max: Object.fromEntries(fields.map((field) => [field, at])) },
    { hint: "_id_" },
  );
};

/** Stores when devices were seen, many in one command. */
export const recordSeen = (
  devices: Collection<DeviceDocument>,
  fields: readonly ("lastSeenAt" | "tokenUpdatedAt")[],
) => {
  const commit = createGroupCommit<SeenDevice, undefined>(async (group) => {
    await update(devices, group, fields);
    return group.map(() => undefined);
  }, groups);
  return async (projectId: ProjectId, _id: DeviceId, at: Date): Promise<void> => {
    await commit({ projectId, _id, at });
  };
};

/** Stores when devices opened notifications: one command per hour of opens, only for devices whose stored time is a day older. */
export const recordOpened =
  (devices: Collection<DeviceDocument>) =>
  async (opened: readonly SeenDevice[]): Promise<void> => {
    for (const seen of Map.groupBy(opened, ({ at }) => Math.floor(at.getTime() / 3_600_000)).values()) {
      const latest = Math.max(...seen.map(({ at }) => at.getTime()));
      const due = [{ lastOpenedAt: { $lt: new Date(latest - seenEveryMs) } }, { lastOpenedAt: { $exists: false } }];
      await update(devices, seen, ["lastSeenAt", "lastOpenedAt"], { $or: due });
    }
  };

/** A refusal that arrives sooner is about the current registration. */
const promptRefusalMs = 60_000;
/** The same refusal may be delivered twice within this time. */
const redeliveredRefusalMs = 60_000;

/** Since when a device's token is dead or wrong, and why. */
export type TokenRefusal = {
  readonly deviceId: DeviceId;
  readonly tokenHash: string;
  readonly at: Date;
  readonly reason: InactiveReason;
};

/**
 * Deactivates a device after a token refusal; false when it did not. A late refusal must not deactivate a device that has registered
 * since. Registrations that change nothing are stored once a day, so a refusal of that day may be older than the last registration. The
 * first such refusal sets `doubtedAt`. The next one, about a later push, deactivates the device unless it has registered in between.
 */
export const retireDevice =
  (devices: Collection<DeviceDocument>) =>
  async (context: EventContext, { deviceId: id, tokenHash, at, reason }: TokenRefusal): Promise<boolean> => {
    const { projectId } = context;
    const now = context.at.getTime();
    const filter = { projectId, _id: id, tokenHash, status: "active" as const, tokenUpdatedAt: { $lt: at } };
    const isPrompt = now - at.getTime() < promptRefusalMs;
    const certain = [
      { tokenUpdatedAt: { $lt: new Date(at.getTime() - seenEveryMs) } },
      { doubtedAt: { $lt: new Date(now - redeliveredRefusalMs) } },
    ];
    const { modifiedCount } = await devices.updateOne(
      { ...filter, ...(isPrompt ? {} : { $or: certain }) },
      {
        $set: { status: "inactive", inactiveReason: reason, inactiveAt: context.at, updatedAt: context.at },
        $unset: { doubtedAt: "" },
        $inc: { version: 1 },
        $push: {
          outbox: registryEvent(context, "DeviceDeactivatedV1", id, { device_id: id, reason }),
        },
      },
    );
    if (modifiedCount === 0 && !isPrompt)
      await devices.updateOne(
        { ...filter, doubtedAt: { $exists: false } },
        { $set: { doubtedAt: context.at }, $inc: { version: 1 } },
      );
    return modifiedCount > 0;
  };

/** Old devices have no `lastSeenAt`; for these, `updatedAt` counts. */
const silentSince = (before: Date): Filter<DeviceDocument> => ({
  $or: [{ lastSeenAt: { $lt: before } }, { lastSeenAt: { $exists: false }, updatedAt: { $lt: before } }],
});

export const retireStale = (devices: Collection<DeviceDocument>) => ({
  /** Some active devices that were last seen before `before`, by id. */
  findStale: async (
    projectId: ProjectId,
    { before, after = "" as DeviceId, limit }: { before: Date; after?: DeviceId | undefined; limit: number },
  ): Promise<DeviceId[]> => {
    const found = await findSome(
      devices,
      { projectId, status: "active", _id: { $gt: after }, ...silentSince(before) },
      { hint: indexName(deviceIndexes.status), sort: { _id: 1 }, limit, projection: { _id: 1 } },
    );
    return found.map(({ _id }) => _id);
  },

  /** Deactivates those of the devices that are still silent, each with its event. Resolves to how many. */
  retireStale: async (context: EventContext, ids: readonly DeviceId[], before: Date): Promise<number> => {
    const { projectId, at } = context;
    const retired = { status: "inactive", inactiveReason: "stale", inactiveAt: at };
    const { modifiedCount } = await devices.updateMany(
      { projectId, _id: { $in: [...ids].sort() }, status: "active", ...silentSince(before) },
      [{ $set: { ...retired, ...eventOfEach(context, "DeviceDeactivatedV1", { reason: "stale" }) } }],
    );
    return modifiedCount;
  },
});
