import type {
  DeviceId,
  DeviceNotification,
  KeysetPageOf,
  KeysetRequest,
  NotificationContent,
  NotificationId,
  ProjectId,
} from "@herald/contracts";
import { deadlineOptions, decodeAfter, encodeAfter, guardStore } from "@herald/mongo";
import type { Db, Filter } from "mongodb";
import { currentStatus } from "../domain/notification-status.ts";
import type { ProviderIdOf } from "./delivery-list.ts";
import { traceOf } from "./delivery-trace.ts";
import { batchesOf, findDeviceRows, type Located, locatedFields } from "./device-rows.ts";
import { type NotificationDocument, notificationCollection, notificationHints } from "./notification-document.ts";

type Candidate = Located & Pick<NotificationDocument, "acceptedAt" | "cancelledAt" | "dueAt" | "final">;

const fields = { ...locatedFields, acceptedAt: 1, cancelledAt: 1, dueAt: 1, "final.status": 1 } as const;

/** Large sends of the project that a page looks at: each costs a row of up to 1,000 devices. */
const maxLarge = 100;
/** Of those, the ones whose batches all have to be searched ({@link batchesOf}): several megabytes each. */
const maxSearched = 4;
/** Rows of large sends are read for so many notifications at a time, so that a page of small sends reads few too many. */
const atATime = 20;

/** What was sent to one device, newest first. */
export const createDeviceTimeline = (db: Db, providerIdOf: ProviderIdOf) => {
  const notifications = notificationCollection(db);
  const deviceRows = findDeviceRows(db);

  const newest = async (
    filter: Filter<NotificationDocument>,
    hint: string,
    limit: number,
  ): Promise<{ found: Candidate[]; isCut: boolean }> => {
    const found = await notifications
      .find(filter, { hint, projection: fields, batchSize: limit + 1, ...deadlineOptions() })
      .sort({ _id: -1 })
      .limit(limit)
      .toArray();
    return { found: found as Candidate[], isCut: found.length === limit };
  };

  /** Notifications that may have gone to the device, newest first, and whether there are older ones. */
  const candidates = async (projectId: ProjectId, id: DeviceId, before: string | undefined, perPage: number) => {
    const filter = { projectId, ...(before !== undefined && { _id: { $lt: before as NotificationId } }) };
    const { recipient, recipients, large } = notificationHints;
    const sources = await Promise.all([
      newest({ ...filter, recipient: id }, recipient, perPage + 1),
      newest({ ...filter, recipients: id }, recipients, perPage + 1),
      newest({ ...filter, large: { $exists: true } }, large, maxLarge),
    ]);
    // Behind the last one of a source that was cut, others of that source may be missing.
    const ends = sources.flatMap(({ found, isCut }) => (isCut ? (found.at(-1)?._id ?? []) : []));
    const horizon = ends.toSorted().at(-1) ?? "";
    const all = sources
      .flatMap(({ found }) => found)
      .filter(({ _id }) => _id >= horizon)
      .toSorted((one, other) => (one._id < other._id ? 1 : -1));
    const searched = all.filter((one) => !one.rows && !batchesOf(one, id));
    const tooMany = searched[maxSearched];
    const some = tooMany ? all.slice(0, all.indexOf(tooMany)) : all;
    return { some, isCut: horizon !== "" || tooMany !== undefined };
  };

  const withContent = async (
    projectId: ProjectId,
    entries: readonly { readonly candidate: Candidate; readonly rest: Omit<DeviceNotification, "notification"> }[],
  ): Promise<DeviceNotification[]> => {
    const ids = entries.map(({ candidate }) => candidate._id);
    const found = await notifications
      .find({ projectId, _id: { $in: ids } }, { hint: "_id_", projection: { content: 1 }, batchSize: ids.length + 1 })
      .toArray();
    const contents = new Map(found.map(({ _id, content }) => [_id, JSON.parse(content) as NotificationContent]));
    return entries.map(({ candidate, rest }) => {
      const { _id, acceptedAt, final, cancelledAt, dueAt } = candidate;
      const { title, body } = contents.get(_id) ?? {};
      const progress = { scheduled: dueAt !== undefined, cancelled: cancelledAt !== undefined };
      return {
        notification: {
          id: _id,
          status: final?.status ?? currentStatus({ ...progress, queued: false }),
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
     * A page looks at a bounded number of notifications, so it may have fewer rows than it could, and still a `next`.
     * @throws HeraldError `validation-failed` for an `after` that was not given out.
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
        const rows = await deviceRows(projectId, chunk, id);
        for (const candidate of chunk) {
          if (entries.length === perPage) break;
          looked++;
          const { delivery } = traceOf(rows.get(candidate._id) ?? [], providerIdOf);
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

export type DeviceTimeline = ReturnType<typeof createDeviceTimeline>;
