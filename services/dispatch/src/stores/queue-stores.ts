import { randomUUID } from "node:crypto";
import type { NotificationId, ProjectId } from "@herald/contracts";
import { findByIds, findSome, guardStore } from "@herald/mongo";
import type { Db } from "mongodb";
import type { Claim, Run } from "./delivery-document.ts";
import {
  checkEveryMs,
  findProjectAfter,
  type NotificationRecord,
  type NotificationState,
  notificationCollection,
  notificationHints,
  toRecord,
} from "./notification-document.ts";
import { runsOf } from "./small-send-store.ts";

/** A small send that waits in its project's backlog. */
export type QueuedSend = {
  readonly document: NotificationRecord;
  /** The batches to send. Empty when an earlier holder of the drain message has already begun this send. */
  readonly runs: readonly Run[];
};

const some = { $exists: true } as const;

/**
 * Small sends beyond their project's share. Each is stored whole, with its recipients, and keeps `queued` until its last event is
 * published. So the next holder of the project's drain message finds the sends that an earlier holder did not complete.
 */
export const createBacklogStore = (db: Db) => {
  const notifications = notificationCollection(db);
  const hint = notificationHints.backlog;

  return guardStore({
    /** Up to `limit` sends of a project's backlog after the id `after`, oldest first: ids begin with the time. */
    read: async (projectId: ProjectId, after: string, limit: number, now: Date): Promise<QueuedSend[]> => {
      const later = { projectId, queued: some, _id: { $gt: after as NotificationId } };
      const found = await findSome(notifications, later, { hint, sort: { _id: 1 }, limit });
      return found.map((document) => ({
        document: toRecord(document),
        runs: document.sending || document.final ? [] : runsOf(document, now),
      }));
    },

    /**
     * Claims sends for a drain message. Resolves to the ids that this call claimed; another process has begun or removed the rest.
     * Not repeatable: after an error, some sends may be claimed.
     */
    claim: async (
      projectId: ProjectId,
      ids: readonly NotificationId[],
      { at, sequence }: Claim,
      now: Date,
    ): Promise<ReadonlySet<NotificationId>> => {
      const slice = randomUUID();
      const { modifiedCount } = await notifications.updateMany(
        { _id: { $in: ids.toSorted() }, projectId, queued: some, rows: some, sending: { $exists: false } },
        {
          $set: {
            sending: { at, sequence, slice, open: true },
            checkAt: new Date(now.getTime() + checkEveryMs),
          },
        },
        { hint: "_id_" },
      );
      if (modifiedCount === ids.length) return new Set(ids);
      const claimed = await findByIds(
        notifications,
        ids,
        { projectId, "sending.slice": slice },
        { projection: { _id: 1 } },
      );
      return new Set(claimed.map(({ _id }) => _id));
    },

    /** Removes sends from the backlog. Each has ended or moved to the ledger of large sends, and its events are published. */
    remove: async (projectId: ProjectId, ids: readonly NotificationId[]): Promise<void> => {
      await notifications.updateMany(
        { _id: { $in: ids.toSorted() }, projectId },
        { $unset: { queued: "" } },
        { hint: "_id_" },
      );
    },

    /** How many sends wait in a project's backlog, counted up to `limit`. */
    count: (projectId: ProjectId, limit: number): Promise<number> =>
      notifications.countDocuments({ projectId, queued: some }, { hint, limit }),

    /** The first project with a backlog whose id is greater than `projectId`. */
    projectAfter: findProjectAfter(db, "queued", hint),
  });
};

/** Which notifications of each project are being expanded, and which wait for their turn. */
export const createExpansionQueue = (db: Db) => {
  const notifications = notificationCollection(db);
  const hint = notificationHints.expansions;

  return guardStore({
    /** How many expansions of a project are running, counted up to `limit`. */
    countRunning: (projectId: ProjectId, limit: number): Promise<number> =>
      notifications.countDocuments(
        { projectId, expansion: { ...some, $eq: "running" }, expanded: { $exists: false } },
        { hint, limit },
      ),

    /** The oldest queued notifications of a project. */
    oldest: async (projectId: ProjectId, limit: number): Promise<NotificationId[]> => {
      const filter = { projectId, expansion: { ...some, $eq: "queued" } } as const;
      const queued = await findSome(notifications, filter, { hint, sort: { _id: 1 }, limit, projection: { _id: 1 } });
      return queued.map(({ _id }) => _id);
    },

    /** Marks expansions as running after they were commanded. From then on, the sweep checks these notifications. */
    start: async (projectId: ProjectId, ids: readonly NotificationId[], checkAt: Date): Promise<void> => {
      await notifications.updateMany(
        { _id: { $in: [...ids] }, projectId, expansion: { ...some, $eq: "queued" } },
        { $set: { expansion: "running", checkAt } },
      );
    },

    /** Queues a notification that was never queued, unless it is expanded or final. */
    add: async (projectId: ProjectId, id: NotificationId): Promise<void> => {
      await notifications.updateOne(
        {
          _id: id,
          projectId,
          final: { $exists: false },
          expanded: { $exists: false },
          expansion: { $exists: false },
        },
        { $set: { expansion: "queued" }, $unset: { checkAt: "" } },
      );
    },

    /** Restarts the expansion of an expanded notification, with the same batch ids. False when it has changed since it was read. */
    restart: async ({ _id, projectId, expanded }: NotificationState, checkAt: Date): Promise<boolean> => {
      const { modifiedCount } = await notifications.updateOne(
        {
          _id,
          projectId,
          final: { $exists: false },
          expanded: some,
          "expanded.at": expanded?.at ?? { $exists: false },
        },
        { $unset: { expanded: "" }, $set: { expansion: "running", checkAt } },
      );
      return modifiedCount === 1;
    },

    /** The first project with a queued or running expansion whose id is greater than `projectId`. */
    projectAfter: findProjectAfter(db, "expansion", hint),
  });
};
