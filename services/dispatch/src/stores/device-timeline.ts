import type {
  DeviceId,
  DeviceNotification,
  KeysetPageOf,
  KeysetRequest,
  NotificationContent,
  NotificationId,
  ProjectId,
} from "@herald/contracts";
import { deadlineOptions, decodeAfter, encodeAfter, findByIds, findSome, guardStore } from "@herald/mongo";
import type { Db, Filter } from "mongodb";
import { traceOf } from "./delivery-trace.ts";
import {
  type NotificationDocument,
  notificationCollection,
  notificationHints,
  shownStatus,
} from "./notification-document.ts";
import { createRows, isSearched, type RowSource, rowSourceFields } from "./rows.ts";

type Candidate = RowSource & Pick<NotificationDocument, "acceptedAt" | "status" | "paused">;

const fields = { ...rowSourceFields, acceptedAt: 1, status: 1, paused: 1 } as const;

/** Large sends of the project that a page searches. Each costs a row of up to 1,000 devices. */
const maxLarge = 100;
/** Large sends of a page whose batches must all be searched. */
const maxSearched = 4;
/** Rows are read for this many notifications at a time, so that a page of small sends reads few rows it does not need. */
const atATime = 20;

/** The notifications sent to one device, newest first. */
export const createDeviceTimeline = (db: Db) => {
  const notifications = notificationCollection(db);
  const { rowsOfDevice } = createRows(db);

  const newest = async (
    filter: Filter<NotificationDocument>,
    hint: string,
    limit: number,
  ): Promise<{ found: Candidate[]; isCut: boolean }> => {
    const options = { hint, sort: { _id: -1 }, limit, projection: fields, ...deadlineOptions() } as const;
    const found = await findSome(notifications, filter, options);
    return { found: found as Candidate[], isCut: found.length === limit };
  };

  /** Notifications that may have gone to the device, newest first, and whether there are older ones. */
  const candidates = async (projectId: ProjectId, id: DeviceId, before: string | undefined, perPage: number) => {
    const filter = { projectId, ...(before !== undefined && { _id: { $lt: before as NotificationId } }) };
    const { recipient, recipients, large } = notificationHints;
    const sources = await Promise.all([
      newest({ ...filter, recipient: id }, recipient, perPage + 1),
      newest({ ...filter, recipients: id }, recipients, perPage + 1),
      newest({ ...filter, expansions: { $exists: true } }, large, maxLarge),
    ]);
    // A source that reached its limit may lack notifications older than its last one.
    const ends = sources.flatMap(({ found, isCut }) => (isCut ? (found.at(-1)?._id ?? []) : []));
    const oldestComplete = ends.toSorted().at(-1) ?? "";
    const all = sources
      .flatMap(({ found }) => found)
      .filter(({ _id }) => _id >= oldestComplete)
      .toSorted((one, other) => (one._id < other._id ? 1 : -1));
    const searched = all.filter((one) => isSearched(one, id));
    const tooMany = searched[maxSearched];
    const some = tooMany ? all.slice(0, all.indexOf(tooMany)) : all;
    return { some, isCut: oldestComplete !== "" || tooMany !== undefined };
  };

  const withContent = async (
    projectId: ProjectId,
    entries: readonly { readonly candidate: Candidate; readonly rest: Omit<DeviceNotification, "notification"> }[],
  ): Promise<DeviceNotification[]> => {
    const ids = entries.map(({ candidate }) => candidate._id);
    const found = await findByIds(notifications, ids, { projectId }, { projection: { content: 1 } });
    const contents = new Map(found.map(({ _id, content }) => [_id, JSON.parse(content) as NotificationContent]));
    return entries.map(({ candidate, rest }) => {
      const { _id, acceptedAt } = candidate;
      const { title, body } = contents.get(_id) ?? {};
      return {
        notification: {
          id: _id,
          status: shownStatus(candidate),
          ...(title !== undefined && { title }),
          ...(body !== undefined && { body }),
          created_at: acceptedAt.toISOString(),
        },
        ...rest,
      };
    });
  };

  return guardStore({
    /**
     * A page searches a bounded number of notifications. It may have a `next` although it has fewer rows than requested.
     * @throws HeraldError `validation-failed` for an `after` that Herald did not issue.
     */
    timeline: async (
      projectId: ProjectId,
      id: DeviceId,
      { after, perPage }: KeysetRequest,
    ): Promise<KeysetPageOf<DeviceNotification>> => {
      const { some, isCut } = await candidates(projectId, id, decodeAfter(after), perPage);
      const entries: Parameters<typeof withContent>[1][number][] = [];
      let looked = 0;
      while (looked < some.length && entries.length < perPage) {
        const chunk = some.slice(looked, looked + atATime);
        const rows = await rowsOfDevice(projectId, chunk, id);
        for (const candidate of chunk) {
          if (entries.length === perPage) break;
          looked++;
          const { delivery } = traceOf(rows.get(candidate._id) ?? []);
          if (!delivery) continue;
          const { device_id: _, ...rest } = delivery;
          entries.push({ candidate, rest });
        }
      }
      const last = some[looked - 1]?._id;
      const next = last !== undefined && (isCut || looked < some.length) ? encodeAfter(last) : null;
      return { data: entries.length === 0 ? [] : await withContent(projectId, entries), next };
    },
  });
};
