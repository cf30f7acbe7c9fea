import { type KeysetPageOf, type KeysetRequest, maxCountedDevices, type ProjectId } from "@herald/contracts";
import { deadlineOptions, decodeAfter, encodeAfter, indexName } from "@herald/mongo";
import type { Collection } from "mongodb";
import { type DeviceDocument, deviceIndexes } from "./device-document.ts";

type SeenDevice = Pick<DeviceDocument, "updatedAt" | "identifiedAt" | "lastSeenAt">;

export type UserRow = { readonly userId: string; readonly devices: number; readonly lastSeenAt: Date };

/** One more than is counted: so the devices of a user with that many end inside a page. */
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
 * Users by id. A page reads at most {@link maxRows} devices, so it may have fewer users than it could, and still a `next`.
 * @throws HeraldError `validation-failed` for an `after` that was not given out.
 */
export const listUsers =
  (devices: Collection<DeviceDocument>) =>
  async (projectId: ProjectId, { after, perPage }: KeysetRequest): Promise<KeysetPageOf<UserRow>> => {
    const rows = await devices
      .find(
        { projectId, userId: { $gt: decodeAfter(after) ?? "" } },
        {
          hint: indexName(deviceIndexes.users),
          projection: { userId: 1, updatedAt: 1, identifiedAt: 1, lastSeenAt: 1 },
          batchSize: maxRows + 1,
          ...deadlineOptions(),
        },
      )
      .sort({ userId: 1 })
      .limit(maxRows)
      .toArray();
    const all = [...Map.groupBy(rows, ({ userId }) => userId ?? "")];
    const isCut = rows.length === maxRows;
    // More devices of the last user may follow. The next page begins with that user, unless there was no other.
    const users = isCut && all.length > 1 ? all.slice(0, -1) : all;
    const data = users.slice(0, perPage).map(([userId, own]) => ({
      userId,
      devices: Math.min(own.length, maxCountedDevices),
      lastSeenAt: lastSeenOf(own),
    }));
    const last = data.at(-1);
    return { data, next: last && (isCut || users.length > perPage) ? encodeAfter(last.userId) : null };
  };
