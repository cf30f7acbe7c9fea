import { firstNotificationId, type NotificationId, type ProjectId, type SendV1 } from "@herald/contracts";
import {
  createCounts,
  ensureIndexes,
  findBatched,
  findSome,
  guardStore,
  insertBatched,
  updateBatched,
} from "@herald/mongo";
import type { Db, Filter } from "mongodb";
import { type Failures, finalStatus, noDevices, type Tally } from "../domain/notification-counts.ts";
import { eventsOfSend, notificationEnded } from "./events.ts";
import {
  checkEveryMs,
  listNotifications,
  type NotificationDocument,
  type NotificationRecord,
  type NotificationState,
  newDocument,
  newState,
  notificationCollection,
  notificationHints,
  notificationIndexes,
  type OutboxCarrier,
  toRecord,
} from "./notification-document.ts";

const maxDue = 100;
const stateOnly = { content: 0, outbox: 0, rows: 0 };

/** The final counts, and the time of the end. */
type Ending = { readonly tally: Tally; readonly failures: Failures; readonly now: Date };

type Inserted = { readonly document: NotificationRecord; readonly outbox: NonNullable<OutboxCarrier["outbox"]> };

/** Notifications, from their acceptance to their final counts. */
export const createNotificationStore = (db: Db) => {
  const notifications = notificationCollection(db);
  const counts = createCounts();

  const insertOne = insertBatched(notifications);
  const updateOne = updateBatched(notifications);
  const findWhole = findBatched(notifications);
  const findState = findBatched<NotificationDocument, keyof NotificationState>(notifications, stateOnly);
  const findOutbox = findBatched<NotificationDocument, keyof OutboxCarrier>(notifications, { projectId: 1, outbox: 1 });

  const get = async (projectId: ProjectId, id: NotificationId): Promise<NotificationRecord | null> => {
    const found = await findWhole({ _id: id, projectId });
    return found && toRecord(found);
  };

  const getState = (projectId: ProjectId, id: NotificationId): Promise<NotificationState | null> =>
    findState({ _id: id, projectId });

  /** Ends a notification that still matches `filter`. Null when it does not match. */
  const end = async (
    { _id, projectId, cancelledAt, tags }: NotificationState,
    filter: Filter<NotificationDocument>,
    { tally, failures, now }: Ending,
  ): Promise<OutboxCarrier | null> => {
    const final = { status: finalStatus(cancelledAt !== undefined, tally), at: now, tally, failures };
    const ended = notificationEnded({ _id, projectId, ...(tags && { tags }) }, final);
    const updated = await updateOne(
      { _id, projectId },
      { ...filter, final: { $exists: false } },
      { $set: { final }, $unset: { checkAt: "", dueAt: "" }, $push: { outbox: ended } },
    );
    if (updated === "not found") return null;
    const written = await findOutbox({ _id, projectId });
    if (updated === "updated") return written;
    // Another process ended it in the meantime and published the event. Publishing the same event again does no harm.
    return written?.outbox?.some(({ id }) => id === ended.id) ? written : null;
  };

  const insert = async (
    state: NotificationState,
    { content }: Pick<SendV1, "content">,
  ): Promise<Inserted | undefined> => {
    const document = { ...state, content };
    const outbox = eventsOfSend(document);
    const inserted = await insertOne({
      ...newDocument(state, content),
      ...(!state.final && { large: true as const }),
      outbox,
    });
    return inserted ? { document, outbox } : undefined;
  };

  return guardStore({
    ensureIndexes: () => ensureIndexes(notifications, notificationIndexes),
    get,
    getState,

    /** Inserts a notification and queues its expansion in its project. Undefined when it already exists. */
    insert: (
      send: SendV1,
      now: Date,
      more: Pick<NotificationState, "abandonedAt"> = {},
    ): Promise<Inserted | undefined> => {
      const state = newState(send, now);
      const waits = state.dueAt ? { checkAt: state.dueAt } : { expansion: "queued" as const };
      return insert({ ...state, ...waits, ...more }, send);
    },

    /** Inserts a cancelled notification without devices before its send is handled. The send then finds it and does nothing. */
    insertCancelled: (send: SendV1, now: Date): Promise<Inserted | undefined> => {
      const { dueAt: _, ...state } = newState(send, now);
      const final = { status: "cancelled", at: now, tally: noDevices, failures: {} } as const;
      return insert({ ...state, cancelledAt: now, final }, send);
    },

    /** Queues the expansion of a notification whose `send_at` has passed. Null when it still waits, is final or does not exist. */
    begin: async (projectId: ProjectId, id: NotificationId, now: Date): Promise<NotificationRecord | null> => {
      const begun = await notifications.findOneAndUpdate(
        { _id: id, projectId, final: { $exists: false }, dueAt: { $lte: now } },
        { $unset: { dueAt: "", checkAt: "" }, $set: { expansion: "queued" } },
        { returnDocument: "after" },
      );
      if (begun) return toRecord(begun);
      // After a crash behind the update above, the message is redelivered, and the expansion must still be commanded.
      const known = await get(projectId, id);
      return known && !known.final && !known.dueAt && !known.expanded ? known : null;
    },

    /** Writes the result of registry's partitioning, once. */
    expanded: async (
      projectId: ProjectId,
      id: NotificationId,
      expanded: NotificationState["expanded"] & {},
      now: Date,
    ) => {
      await updateOne(
        { _id: id, projectId },
        { final: { $exists: false }, expanded: { $exists: false } },
        { $set: { expanded, checkAt: new Date(now.getTime() + checkEveryMs) }, $unset: { expansion: "" } },
      );
    },

    /** Records that an expansion was dead-lettered: registry partitions no page after the dead one. */
    expansionLost: async (projectId: ProjectId, id: NotificationId, now: Date) => {
      await notifications.updateOne(
        { _id: id, projectId, final: { $exists: false }, expansionLostAt: { $exists: false } },
        { $set: { expansionLostAt: now, checkAt: new Date(now.getTime() + checkEveryMs) }, $unset: { expansion: "" } },
      );
    },

    /** Records that the send can never succeed. Batches that registry still partitions for it are counted as failed. */
    abandon: async (projectId: ProjectId, id: NotificationId, now: Date) => {
      await notifications.updateOne(
        { _id: id, projectId, final: { $exists: false } },
        { $set: { abandonedAt: now }, $unset: { dueAt: "" } },
      );
    },

    /** Cancels a notification that is being sent. Pushes already sent still have to be counted. False when it is final. */
    cancelBegun: async (projectId: ProjectId, id: NotificationId, now: Date): Promise<boolean> => {
      const { matchedCount } = await notifications.updateOne(
        { _id: id, projectId, final: { $exists: false }, dueAt: { $exists: false } },
        // The time of the first cancel counts.
        [{ $set: { cancelledAt: { $ifNull: ["$cancelledAt", now] } } }],
      );
      return matchedCount === 1;
    },

    /** Cancels a notification that waits for its `send_at`, so it has no devices. Null when it does not wait. */
    cancelScheduled: (document: NotificationState, now: Date): Promise<OutboxCarrier | null> =>
      end({ ...document, cancelledAt: now }, { dueAt: { $exists: true } }, { tally: noDevices, failures: {}, now }),

    /** Ends a notification with its counts. Null when it has changed since `document` was read. */
    finish: (document: NotificationState, ending: Ending): Promise<OutboxCarrier | null> =>
      end(document, { cancelledAt: document.cancelledAt ?? { $exists: false } }, ending),

    /** Adds devices that were partitioned after the end to the final counts. A caller with fewer devices changes nothing. */
    amend: async (projectId: ProjectId, id: NotificationId, { tally, failures }: Omit<Ending, "now">) => {
      await notifications.updateOne(
        { _id: id, projectId, "final.tally.devices": { $lt: tally.devices } },
        { $set: { "final.tally": tally, "final.failures": failures } },
      );
    },

    /** Claims up to {@link maxDue} notifications whose check is due. Of two callers, only the first gets a notification. */
    takeUnchecked: async (now: Date): Promise<NotificationState[]> => {
      const options = { sort: { checkAt: 1 }, limit: maxDue, projection: stateOnly } as const;
      const due = await findSome(
        notifications,
        { checkAt: { $exists: true, $lte: now } },
        { hint: notificationHints.unfinished, ...options },
      );
      const taken: NotificationState[] = [];
      for (const document of due) {
        const { _id, projectId, checkAt } = document;
        const { modifiedCount } = await notifications.updateOne(
          { _id, projectId, ...(checkAt ? { checkAt } : {}) },
          { $set: { checkAt: new Date(now.getTime() + checkEveryMs) } },
        );
        if (modifiedCount === 1) taken.push(document);
      }
      return taken;
    },

    /**
     * Notifications after the id `after`, in order of their ids, that ended before `before` and whose events are published. None that was
     * accepted after `before` can have ended before it. So ids, which contain the time, bound the search without an index on the end.
     */
    endedBefore: (
      before: Date,
      after: string | undefined,
      limit: number,
    ): Promise<Pick<NotificationState, "_id" | "projectId">[]> =>
      findSome(
        notifications,
        {
          _id: { $lt: firstNotificationId(before), ...(after !== undefined && { $gt: after as NotificationId }) },
          "final.at": { $lt: before },
          outbox: { $exists: false },
        },
        { hint: "_id_", sort: { _id: 1 }, limit, projection: { projectId: 1 } },
      ),

    /** Removes notifications of any projects. */
    removeAll: async (documents: readonly Pick<NotificationState, "_id" | "projectId">[]) => {
      const projectIds = [...new Set(documents.map(({ projectId }) => projectId))];
      await notifications.deleteMany({
        projectId: { $in: projectIds },
        _id: { $in: documents.map(({ _id }) => _id) },
      });
    },

    list: listNotifications(notifications, counts),

    /** Up to `limit` of a project's notifications, oldest first, for deletion. */
    ofProject: (projectId: ProjectId, limit: number): Promise<Pick<NotificationState, "_id" | "projectId">[]> => {
      const options = { hint: notificationHints.list, sort: { _id: 1 }, limit, projection: { projectId: 1 } } as const;
      return findSome(notifications, { projectId }, options);
    },
  });
};

export type NotificationStore = ReturnType<typeof createNotificationStore>;
