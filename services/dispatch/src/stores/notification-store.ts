import type {
  NotificationContent,
  NotificationId,
  OutboxEvent,
  PageOf,
  PageRequest,
  ProjectId,
  SendV1,
} from "@herald/contracts";
import {
  createCounts,
  ensureIndexes,
  findPage,
  guardStore,
  type IndexSpec,
  indexName,
  isDuplicateKey,
  outboxIndex,
} from "@herald/mongo";
import type { Collection, Db, Filter } from "mongodb";
import type { Failures, Tally } from "../domain/counts.ts";
import { noDevices } from "../domain/counts.ts";
import { type FinalStatus, finalStatus } from "../domain/notification-status.ts";
import { notificationAccepted, notificationEnded } from "./notification-events.ts";

/** A notification without its content, which most steps have no use for. */
export type NotificationState = Omit<NotificationDocument, "content" | "outbox">;

export type NotificationDocument = {
  _id: NotificationId;
  projectId: ProjectId;
  content: NotificationContent;
  acceptedAt: Date;
  sendAt?: Date;
  expiresAt: Date;
  /** Its expansion is to be commanded then. Absent: that has begun. */
  dueAt?: Date;
  /** What registry dealt. */
  expanded?: { batches: number; devices: number; unmatched: string[] };
  cancelledAt?: Date;
  /** The send was dead-lettered: its batches are counted as failed, and nothing is sent. */
  abandonedAt?: Date;
  /** An expansion was dead-lettered: no further batch will come. */
  expansionLostAt?: Date;
  /** When the sweep looks at it; absent when it is final. */
  checkAt?: Date;
  final?: { status: FinalStatus; at: Date; tally: Tally; failures: Failures };
  outbox?: OutboxEvent[];
};

const listIndex: IndexSpec = { fields: { projectId: 1, _id: 1 }, purpose: "list" };
const unfinishedIndex: IndexSpec = {
  fields: { checkAt: 1 },
  purpose: "unfinished",
  partial: { checkAt: { $exists: true } },
};

/** Most notifications end within it; a later one is looked at so often. */
const checkEveryMs = 60_000;
const mostDue = 100;

export const notificationCollection = (db: Db): Collection<NotificationDocument> => db.collection("notifications");

/** Notifications, from their acceptance to their final counts. */
export const createNotificationStore = (db: Db) => {
  const notifications = notificationCollection(db);
  const counts = createCounts();

  const get = (projectId: ProjectId, id: NotificationId): Promise<NotificationDocument | null> =>
    notifications.findOne({ _id: id, projectId });

  const getState = (projectId: ProjectId, id: NotificationId): Promise<NotificationState | null> =>
    notifications.findOne({ _id: id, projectId }, { projection: { content: 0, outbox: 0 } });

  /** Finishes it if it still is as `filter` says. False when it is not. */
  const end = async (
    document: NotificationState,
    filter: Filter<NotificationDocument>,
    { tally, failures, now }: { tally: Tally; failures: Failures; now: Date },
  ): Promise<boolean> => {
    const final = { status: finalStatus(document.cancelledAt !== undefined, tally), at: now, tally, failures };
    const { modifiedCount } = await notifications.updateOne(
      { ...filter, _id: document._id, projectId: document.projectId, final: { $exists: false } },
      {
        $set: { final },
        $unset: { checkAt: "", dueAt: "" },
        $push: { outbox: notificationEnded(document, final) },
      },
    );
    return modifiedCount === 1;
  };

  return guardStore({
    ensureIndexes: () => ensureIndexes(notifications, [listIndex, unfinishedIndex, outboxIndex]),
    get,
    getState,

    /** Inserts it under its id; undefined when it is there already, whoever put it there. */
    insert: async (
      send: SendV1,
      now: Date,
      more: Pick<NotificationDocument, "abandonedAt"> = {},
    ): Promise<NotificationDocument | undefined> => {
      const document = toDocument(send, now, more);
      try {
        await notifications.insertOne(document);
        return document;
      } catch (error) {
        if (isDuplicateKey(error)) return undefined;
        throw error;
      }
    },

    /** A tombstone that the send finds when it comes: cancelled before it began, so nobody was addressed. */
    insertCancelled: async (send: SendV1, now: Date): Promise<NotificationDocument | undefined> => {
      const { checkAt: _, dueAt: __, outbox = [], ...document } = toDocument(send, now);
      const final = { status: "cancelled", at: now, tally: noDevices, failures: {} } as const;
      const ended = { ...document, cancelledAt: now, final };
      const inserted = { ...ended, outbox: [...outbox, notificationEnded(ended, final)] };
      try {
        await notifications.insertOne(inserted);
        return inserted;
      } catch (error) {
        if (isDuplicateKey(error)) return undefined;
        throw error;
      }
    },

    /** Takes it out of waiting for its `send_at`, once that has come. Null when it still waits, is final or is not there. */
    begin: async (projectId: ProjectId, id: NotificationId, now: Date): Promise<NotificationDocument | null> => {
      const begun = await notifications.findOneAndUpdate(
        { _id: id, projectId, final: { $exists: false }, dueAt: { $lte: now } },
        { $unset: { dueAt: "" }, $set: { checkAt: new Date(now.getTime() + checkEveryMs) } },
        { returnDocument: "after" },
      );
      if (begun) return begun;
      // A crash after the update above: the message comes again, and its expansion still has to be commanded.
      const known = await get(projectId, id);
      return known && !known.final && !known.dueAt && !known.expanded ? known : null;
    },

    /** Writes what registry dealt, once. */
    expanded: async (projectId: ProjectId, id: NotificationId, expanded: NotificationDocument["expanded"] & {}) => {
      await notifications.updateOne(
        { _id: id, projectId, final: { $exists: false }, expanded: { $exists: false } },
        { $set: { expanded } },
      );
    },

    /** No page after the dead one will be dealt. */
    expansionLost: async (projectId: ProjectId, id: NotificationId, now: Date) => {
      await notifications.updateOne(
        { _id: id, projectId, final: { $exists: false }, expansionLostAt: { $exists: false } },
        { $set: { expansionLostAt: now } },
      );
    },

    /** Its send can never succeed: what is still dealt for it is counted as failed. */
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

    /** Cancels one that waits for its `send_at`: nobody was addressed. False when it does not wait. */
    cancelScheduled: (document: NotificationState, now: Date): Promise<boolean> =>
      end({ ...document, cancelledAt: now }, { dueAt: { $exists: true } }, { tally: noDevices, failures: {}, now }),

    /** The end, with its counts. False when somebody changed it since `document` was read. */
    finish: (document: NotificationState, sums: { tally: Tally; failures: Failures; now: Date }): Promise<boolean> =>
      end(document, { cancelledAt: document.cancelledAt ?? { $exists: false } }, sums),

    /** Some that nobody has looked at for long enough, each for whoever asks first. */
    takeUnchecked: async (now: Date): Promise<NotificationDocument[]> => {
      const due = await notifications
        .find({ checkAt: { $exists: true, $lte: now } }, { hint: indexName(unfinishedIndex) })
        .sort({ checkAt: 1 })
        .limit(mostDue)
        .toArray();
      const taken: NotificationDocument[] = [];
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

    list: (projectId: ProjectId, request: PageRequest): Promise<PageOf<NotificationDocument>> =>
      findPage(notifications, { filter: { projectId }, request, hint: indexName(listIndex), counts }),

    /** Some ids of a project, oldest first, for whoever deletes them. */
    idsOf: async (projectId: ProjectId, most: number): Promise<NotificationId[]> => {
      const found = await notifications
        .find({ projectId }, { hint: indexName(listIndex), projection: { _id: 1 } })
        .sort({ _id: 1 })
        .limit(most)
        .toArray();
      return found.map(({ _id }) => _id);
    },

    remove: async (projectId: ProjectId, ids: readonly NotificationId[]) => {
      await notifications.deleteMany({ projectId, _id: { $in: [...ids] } });
    },
  });
};

export type NotificationStore = ReturnType<typeof createNotificationStore>;

const toDocument = (
  send: SendV1,
  now: Date,
  more: Pick<NotificationDocument, "abandonedAt"> = {},
): NotificationDocument => {
  const sendAt = send.sendAt === undefined ? undefined : new Date(send.sendAt);
  const waits = sendAt !== undefined && sendAt > now;
  const document: NotificationDocument = {
    _id: send.notificationId,
    projectId: send.projectId,
    content: send.content,
    acceptedAt: new Date(send.acceptedAt),
    ...(sendAt ? { sendAt } : {}),
    expiresAt: new Date(send.expiresAt),
    ...(waits ? { dueAt: sendAt } : {}),
    checkAt: waits ? sendAt : new Date(now.getTime() + checkEveryMs),
    ...more,
  };
  return { ...document, outbox: [notificationAccepted(document)] };
};
