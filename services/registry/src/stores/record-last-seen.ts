import type { DeviceId, ProjectId } from "@herald/contracts";
import { createGroupCommit } from "@herald/kit";
import { anyOf } from "@herald/mongo";
import type { Collection, Filter } from "mongodb";
import { seenEveryMs } from "../domain/device-change.ts";
import type { DeviceDocument } from "./device-document.ts";

export type Seen = { readonly projectId: ProjectId; readonly _id: DeviceId; readonly at: Date };

/** No request waits for it, and a command costs the same for one device as for some. */
const groups = { max: 500, concurrent: 1, intervalMs: 250 };

/** The earliest time of all, so that no device gets a time after it was seen. The version stays: the write conflicts with no other. */
const update = async (
  devices: Collection<DeviceDocument>,
  seen: readonly Seen[],
  fields: readonly ("lastSeenAt" | "tokenUpdatedAt")[],
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
  const commit = createGroupCommit<Seen, undefined>(async (group) => {
    await update(devices, group, fields);
    return group.map(() => undefined);
  }, groups);
  return async (projectId: ProjectId, _id: DeviceId, at: Date): Promise<void> => {
    await commit({ projectId, _id, at });
  };
};

/** Stores when devices opened notifications, one command for those of an hour, and only where the stored time is a day older. */
export const recordOpened =
  (devices: Collection<DeviceDocument>) =>
  async (opened: readonly Seen[]): Promise<void> => {
    for (const seen of Map.groupBy(opened, ({ at }) => Math.floor(at.getTime() / 3_600_000)).values()) {
      const latest = Math.max(...seen.map(({ at }) => at.getTime()));
      const due = [{ lastSeenAt: { $lt: new Date(latest - seenEveryMs) } }, { lastSeenAt: { $exists: false } }];
      await update(devices, seen, ["lastSeenAt"], { $or: due });
    }
  };
