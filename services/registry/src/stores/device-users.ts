import type { DeviceId, ProjectId } from "@herald/contracts";
import { indexName } from "@herald/mongo";
import type { Collection } from "mongodb";
import { userFacet } from "../domain/facets.ts";
import { type DeviceDocument, deviceIndexes, living } from "./device-document.ts";

/** What is asked of devices because of whose they are. */
export const userQueries = (devices: Collection<DeviceDocument>) => ({
  /** Those of the ids that are devices of the project, each with what tells whether it may be sent to. */
  findRecipients: (
    projectId: ProjectId,
    ids: readonly DeviceId[],
  ): Promise<Pick<DeviceDocument, "_id" | "status" | "userId">[]> =>
    devices
      .find(
        { projectId, _id: { $in: [...ids] }, ...living },
        { hint: indexName(deviceIndexes.list), projection: { status: 1, userId: 1 }, batchSize: ids.length + 1 },
      )
      .toArray(),

  /** Up to `limit` of a user's devices, oldest first. */
  ofUser: async (projectId: ProjectId, userId: string, limit: number): Promise<DeviceDocument[]> => {
    const found = await devices
      .find(
        { projectId, facets: userFacet(userId), ...living },
        { hint: indexName(deviceIndexes.facets), limit, batchSize: limit + 1 },
      )
      .toArray();
    return found.sort((one, other) => (one._id < other._id ? -1 : 1));
  },

  countOfUser: (projectId: ProjectId, userId: string): Promise<number> =>
    devices.countDocuments(
      { projectId, facets: userFacet(userId), ...living },
      { hint: indexName(deviceIndexes.facets) },
    ),
});
