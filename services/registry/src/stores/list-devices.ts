import {
  type DeviceFilter,
  firstDeviceId,
  type ListRequest,
  type PageOf,
  Platform,
  type ProjectId,
  pushTokenHash,
} from "@herald/contracts";
import { type Counts, findPage, indexName } from "@herald/mongo";
import type { Collection, Filter } from "mongodb";
import { type DeviceDocument, deviceIndexes } from "./device-document.ts";
import { notDeleted } from "./tombstones.ts";

/** The index of the filter that lets the fewest devices through. The others are checked row by row. */
const indexOf = ({ token, user_id, platform, status }: DeviceFilter) => {
  if (token !== undefined) return deviceIndexes.token;
  if (user_id !== undefined) return deviceIndexes.users;
  if (platform !== undefined) return deviceIndexes.platform;
  return status === undefined ? deviceIndexes.list : deviceIndexes.status;
};

/** A page of a project's devices that fit all filters. */
export const listDevices =
  (devices: Collection<DeviceDocument>, counts: Counts) =>
  (projectId: ProjectId, filter: DeviceFilter, request: ListRequest): Promise<PageOf<DeviceDocument>> => {
    const { status, platform, user_id: userId, token } = filter;
    const wanted = {
      projectId,
      // A tombstone has no status.
      ...(status === undefined ? notDeleted : { status }),
      ...(platform !== undefined && { platform }),
      // The index of tokens begins with the platform.
      ...(platform === undefined && token !== undefined && { platform: { $in: Platform.options } }),
      ...(userId !== undefined && { userId }),
      ...(token !== undefined && { tokenHash: pushTokenHash(token) }),
    } as Filter<DeviceDocument>;
    return findPage(devices, {
      filter: wanted,
      hint: indexName(indexOf(filter)),
      firstId: firstDeviceId,
      request,
      counts,
    });
  };
