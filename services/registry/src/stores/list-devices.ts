import {
  type DeviceFilter,
  firstDeviceId,
  type KeysetRequest,
  type ListRequest,
  maxCountedDevices,
  type PageOf,
  Platform,
  type ProjectId,
  pushTokenHash,
} from "@herald/contracts";
import {
  beginsWith,
  type Counts,
  deadlineOptions,
  decodeAfter,
  encodeAfter,
  findPage,
  findSome,
  indexName,
} from "@herald/mongo";
import type { Collection, Filter } from "mongodb";
import { type DeviceDocument, deviceIndexes } from "./device-document.ts";
import { notDeleted } from "./tombstones.ts";

/** The index of the most selective filter. The other filters are checked row by row. */
const indexOf = ({ token, user_id, app, platform, status }: DeviceFilter) => {
  if (token !== undefined) return deviceIndexes.token;
  if (user_id !== undefined) return deviceIndexes.users;
  if (app !== undefined) return deviceIndexes.app;
  if (platform !== undefined) return deviceIndexes.platform;
  return status === undefined ? deviceIndexes.list : deviceIndexes.status;
};

/** A page of a project's devices that fit all filters. */
export const listDevices =
  (devices: Collection<DeviceDocument>, counts: Counts) =>
  (projectId: ProjectId, filter: DeviceFilter, request: ListRequest): Promise<PageOf<DeviceDocument>> => {
    const { status, platform, user_id: userId, token, app } = filter;
    const wanted = {
      projectId,
      // A tombstone has no status.
      ...(status === undefined ? notDeleted : { status }),
      ...(platform !== undefined && { platform }),
      // The index of tokens begins with the platform.
      ...(platform === undefined && token !== undefined && { platform: { $in: Platform.options } }),
      ...(userId !== undefined && { userId }),
      ...(app !== undefined && { app }),
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

type SeenDevice = Pick<DeviceDocument, "updatedAt" | "identifiedAt" | "lastSeenAt">;

/** One more than the maximum count, so that the devices of a user with that many end within a page. */
const maxRows = maxCountedDevices + 1;

/** When one of these devices last changed, registered or was identified. */
export const lastSeenOf = (devices: readonly SeenDevice[]): Date =>
  new Date(
    Math.max(
      ...devices.map(({ updatedAt, identifiedAt = updatedAt, lastSeenAt = updatedAt }) =>
        Math.max(+updatedAt, +identifiedAt, +lastSeenAt),
      ),
    ),
  );

/**
 * Users by id; with a prefix, only users whose id begins with it. A page reads at most {@link maxRows} devices, so it may have fewer users
 * than `perPage` and still a `next`.
 * @throws HeraldError `validation-failed` for an `after` that no page returned.
 */
export const listUsers =
  (devices: Collection<DeviceDocument>) =>
  async (projectId: ProjectId, { after, perPage }: KeysetRequest, prefix = "") => {
    const filter = { projectId, userId: { ...beginsWith(prefix), $gt: decodeAfter(after) ?? "" } };
    const rows = await findSome(devices, filter, {
      hint: indexName(deviceIndexes.users),
      sort: { userId: 1 },
      limit: maxRows,
      projection: { userId: 1, updatedAt: 1, identifiedAt: 1, lastSeenAt: 1 },
      ...deadlineOptions(),
    });
    const all = [...Map.groupBy(rows, ({ userId }) => userId ?? "")];
    const isCut = rows.length === maxRows;
    // More devices of the last user may follow. The next page begins with that user, unless this page has no other.
    const users = isCut && all.length > 1 ? all.slice(0, -1) : all;
    const data = users.slice(0, perPage).map(([userId, own]) => ({
      userId,
      devices: Math.min(own.length, maxCountedDevices),
      lastSeenAt: lastSeenOf(own),
    }));
    const last = data.at(-1);
    return { data, next: last && (isCut || users.length > perPage) ? encodeAfter(last.userId) : null };
  };
