import { randomUUID } from "node:crypto";
import type { NotificationId, ProjectId } from "@herald/contracts";
import { findByIds, findSome, guardStore } from "@herald/mongo";
import type { Db } from "mongodb";
import type { Claim, Run } from "./delivery-document.ts";
import {
  findProjectAfter,
  type NotificationRecord,
  type NotificationState,
  notificationCollection,
  notificationHints,
  toRecord,
} from "./notification-document.ts";
import { checkAfter, toExpanding, toExpandingAgain } from "./notification-steps.ts";
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
        runs: document.claim || document.end ? [] : runsOf(document, now),
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
        {
          _id: { $in: ids.toSorted() },
          projectId,
          queued: some,
          rows: some,
          step: "sending",
          claim: { $exists: false },
        },
        { $set: { claim: { at, sequence, slice, open: true }, nextAt: checkAfter(now) } },
        { hint: "_id_" },
      );
      if (modifiedCount === ids.length) return new Set(ids);
      const claimed = await findByIds(
        notifications,
        ids,
        { projectId, "claim.slice": slice },
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
    projectAfter: findProjectAfter(db, { queued: some }, hint),
  });
};

/** Which notifications of each project are being expanded, and which wait for their turn. */
export const createExpansionStore = (db: Db) => {
  const notifications = notificationCollection(db);
  const hint = notificationHints.steps;

  return guardStore({
    /** How many expansions of a project are running, counted up to `limit`. */
    countRunning: (projectId: ProjectId, limit: number): Promise<number> =>
      notifications.countDocuments({ projectId, step: "expanding" }, { hint, limit }),

    /** The oldest notifications of a project that wait to be expanded. */
    oldest: async (projectId: ProjectId, limit: number): Promise<NotificationId[]> => {
      const options = { hint, sort: { _id: 1 }, limit, projection: { _id: 1 } } as const;
      const waiting = await findSome(notifications, { projectId, step: "accepted" }, options);
      return waiting.map(({ _id }) => _id);
    },

    /** Records that expansions were commanded. From then on, the sweep checks these notifications. */
    start: async (projectId: ProjectId, ids: readonly NotificationId[], now: Date): Promise<void> => {
      let left = ids.length;
      for (const { filter, update } of toExpanding(now)) {
        if (left <= 0) return;
        left -= (await notifications.updateMany({ ...filter, _id: { $in: [...ids] }, projectId }, update)).matchedCount;
      }
    },

    /** Restarts the expansion of an expanded notification, with the same batch ids. False when it has changed since it was read. */
    restart: async ({ _id, projectId, expanded }: NotificationState, now: Date): Promise<boolean> => {
      const { filter, update } = toExpandingAgain(expanded, now);
      return (await notifications.updateOne({ ...filter, _id, projectId }, update)).modifiedCount === 1;
    },

    /** The first project with a notification that waits to be expanded whose id is greater than `projectId`. */
    projectAfter: findProjectAfter(db, { step: "accepted" }, hint),
  });
};
