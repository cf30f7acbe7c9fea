import type { DeviceId, ProjectId } from "@herald/contracts";
import { createGroupCommit } from "@herald/kit";
import { anyOf } from "@herald/mongo";
import type { Collection } from "mongodb";
import type { DeviceDocument } from "./device-document.ts";

type Seen = { readonly projectId: ProjectId; readonly _id: DeviceId; readonly at: Date };

/** No request waits for it, and a command costs the same for one device as for some. */
const groups = { max: 500, concurrent: 1, intervalMs: 250 };

/** Stores the times of registrations that changed nothing. The version stays: the write conflicts with no other. */
export const recordSeen = (devices: Collection<DeviceDocument>) => {
  const commit = createGroupCommit<Seen, undefined>(async (group) => {
    // The earliest, so that no device gets a time after its registration.
    const at = new Date(Math.min(...group.map((one) => one.at.getTime())));
    await devices.updateMany(
      {
        _id: anyOf([...new Set(group.map(({ _id }) => _id))].sort()),
        projectId: anyOf(group.map(({ projectId }) => projectId)),
        deletedAt: { $exists: false },
      },
      { $max: { lastSeenAt: at, tokenUpdatedAt: at } },
      { hint: "_id_" },
    );
    return group.map(() => undefined);
  }, groups);
  return async (projectId: ProjectId, _id: DeviceId, at: Date): Promise<void> => {
    await commit({ projectId, _id, at });
  };
};
