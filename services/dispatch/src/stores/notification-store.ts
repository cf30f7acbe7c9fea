import type { NotificationId, ProjectId, SendV1 } from "@herald/contracts";
import { createCounts, ensureIndexes, findBatched, guardStore, insertBatched, updateBatched } from "@herald/mongo";
import type { Db, Filter } from "mongodb";
import { type Failures, noDevices, type Tally } from "../domain/counts.ts";
import { finalStatus } from "../domain/notification-status.ts";
import { listNotifications } from "./list-notifications.ts";
import {
  checkEveryMs,
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
import { notificationAccepted, notificationEnded } from "./notification-events.ts";

const maxDue = 100;
const stateOnly = { content: 0, outbox: 0, rows: 0 };

/** The final counts, and when they were. */
export type Ending = { readonly tally: Tally; readonly failures: Failures; readonly now: Date };

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

  /** Finishes it if it still is as `filter` says. Null when it is not. */
  const end = async (
    { _id, projectId, cancelledAt, tags }: Pick<NotificationState, "_id" | "projectId" | "cancelledAt" | "tags">,
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
    // Another process ended it meanwhile and published that; the same event again does no harm.
    return written?.outbox?.some(({ id }) => id === ended.id) ? written : null;
  };

  const insert = async (
    state: NotificationState,
    { content }: Pick<SendV1, "content">,
  ): Promise<Inserted | undefined> => {
    const outbox = [
      notificationAccepted(state, content.targets),
      ...(state.final ? [notificationEnded(state, state.final)] : []),
    ];
    const inserted = await insertOne({
      ...newDocument(state, content),
      ...(!state.final && { large: true as const }),
      outbox,
    });
    return inserted ? { document: { ...state, content }, outbox } : undefined;
  };

  return guardStore({
    ensureIndexes: () => ensureIndexes(notifications, notificationIndexes),
    get,
    getState,

    /** Inserts it under its id, in the queue of its project's expansions; undefined when it already exists. */
    insert: (
      send: SendV1,
      now: Date,
      more: Pick<NotificationState, "abandonedAt"> = {},
    ): Promise<Inserted | undefined> => insert({ ...queued(newState(send, now)), ...more }, send),

    /** A tombstone that the send finds when it comes: cancelled before it began, so it has no devices. */
    insertCancelled: (send: SendV1, now: Date): Promise<Inserted | undefined> => {
      const { checkAt: _, dueAt: __, ...state } = newState(send, now);
      const final = { status: "cancelled", at: now, tally: noDevices, failures: {} } as const;
      return insert({ ...state, cancelledAt: now, final }, send);
    },

    /** Takes it out of waiting for its `send_at`, once that has come, into the queue of its project's expansions. Null when it still waits, is final or is not there. */
    begin: async (projectId: ProjectId, id: NotificationId, now: Date): Promise<NotificationRecord | null> => {
      const begun = await notifications.findOneAndUpdate(
        { _id: id, projectId, final: { $exists: false }, dueAt: { $lte: now } },
        { $unset: { dueAt: "", checkAt: "" }, $set: { expansion: "queued" } },
        { returnDocument: "after" },
      );
      if (begun) return toRecord(begun);
      // A crash after the update above: the message comes again, and its expansion still has to be commanded.
      const known = await get(projectId, id);
      return known && !known.final && !known.dueAt && !known.expanded ? known : null;
    },

    /** Writes what registry partitioned, once. */
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

    /** No page after the dead one will be partitioned. */
    expansionLost: async (projectId: ProjectId, id: NotificationId, now: Date) => {
      await notifications.updateOne(
        { _id: id, projectId, final: { $exists: false }, expansionLostAt: { $exists: false } },
        { $set: { expansionLostAt: now, checkAt: new Date(now.getTime() + checkEveryMs) }, $unset: { expansion: "" } },
      );
    },

    /** Its send can never succeed: what is still partitioned for it is counted as failed. */
    abandon: async (projectId: ProjectId, id: NotificationId, now: Date) => {
      await notifications.updateOne(
        { _id: id, projectId, final: { $exists: false } },
        { $set: { abandonedAt: now }, $unset: { dueAt: "" } },
      );
    },

    /** Cancels one whose sending has begun; what is sent already still has to be counted. False when it is final. */
    cancelBegun: async (projectId: ProjectId, id: NotificationId, now: Date): Promise<boolean> => {
      const { matchedCount } = await notifications.updateOne(
        { _id: id, projectId, final: { $exists: false }, dueAt: { $exists: false } },
        // The first cancel counts.
        [{ $set: { cancelledAt: { $ifNull: ["$cancelledAt", now] } } }],
      );
      return matchedCount === 1;
    },

    /** Cancels one that waits for its `send_at`, before it has devices. Null when it does not wait. */
    cancelScheduled: (document: NotificationState, now: Date): Promise<OutboxCarrier | null> =>
      end({ ...document, cancelledAt: now }, { dueAt: { $exists: true } }, { tally: noDevices, failures: {}, now }),

    /** The end, with its counts. Null when somebody changed it since `document` was read. */
    finish: (document: NotificationState, ending: Ending): Promise<OutboxCarrier | null> =>
      end(document, { cancelledAt: document.cancelledAt ?? { $exists: false } }, ending),

    /**
     * The end of one whose only row is final, without reading it before. Null when there is more to it than that: its event has the kind
     * and labels, for instance.
     */
    finishSingleBatch: (projectId: ProjectId, id: NotificationId, ending: Ending): Promise<OutboxCarrier | null> =>
      end(
        { _id: id, projectId },
        {
          "expanded.batches": 1,
          cancelledAt: { $exists: false },
          expansionLostAt: { $exists: false },
          tags: { $exists: false },
        },
        ending,
      ),

    /** Adds devices that were partitioned after the end to the final counts. A caller with fewer devices changes nothing. */
    amend: async (
      projectId: ProjectId,
      id: NotificationId,
      { tally, failures }: { tally: Tally; failures: Failures },
    ) => {
      await notifications.updateOne(
        { _id: id, projectId, "final.tally.devices": { $lt: tally.devices } },
        { $set: { "final.tally": tally, "final.failures": failures } },
      );
    },

    /** Some that were not checked for long enough; each is claimed by the first caller. */
    takeUnchecked: async (now: Date): Promise<NotificationState[]> => {
      const due = await notifications
        .find({ checkAt: { $exists: true, $lte: now } }, { hint: notificationHints.unfinished, projection: stateOnly })
        .sort({ checkAt: 1 })
        .limit(maxDue)
        .toArray();
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

    /** Some that ended before `before` and whose events are out, those that ended first. */
    endedBefore: (before: Date, limit: number): Promise<Pick<NotificationState, "_id" | "projectId">[]> =>
      notifications
        .find(
          { final: { $exists: true }, "final.at": { $lt: before }, outbox: { $exists: false } },
          { hint: notificationHints.ended, projection: { projectId: 1 } },
        )
        .sort({ "final.at": 1 })
        .limit(limit)
        .toArray(),

    /** Removes some of any projects. */
    removeAll: async (documents: readonly Pick<NotificationState, "_id" | "projectId">[]) => {
      const projectIds = [...new Set(documents.map(({ projectId }) => projectId))];
      await notifications.deleteMany({
        projectId: { $in: projectIds },
        _id: { $in: documents.map(({ _id }) => _id) },
      });
    },

    list: listNotifications(notifications, counts),

    /** Some ids of a project, oldest first, for deletion. */
    idsOf: async (projectId: ProjectId, max: number): Promise<NotificationId[]> => {
      const found = await notifications
        .find({ projectId }, { hint: notificationHints.list, projection: { _id: 1 } })
        .sort({ _id: 1 })
        .limit(max)
        .toArray();
      return found.map(({ _id }) => _id);
    },

    remove: async (projectId: ProjectId, ids: readonly NotificationId[]) => {
      await notifications.deleteMany({ projectId, _id: { $in: [...ids] } });
    },
  });
};

export type NotificationStore = ReturnType<typeof createNotificationStore>;

const queued = ({ checkAt, ...state }: NotificationState): NotificationState =>
  state.dueAt === undefined ? { ...state, expansion: "queued" } : { ...state, ...(checkAt && { checkAt }) };
