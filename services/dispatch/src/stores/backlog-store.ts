import { randomUUID } from "node:crypto";
import type { NotificationId, ProjectId } from "@herald/contracts";
import { guardStore } from "@herald/mongo";
import type { Db } from "mongodb";
import type { Claim, Run } from "./delivery-document.ts";
import { runsOf } from "./embedded-rows.ts";
import {
  checkEveryMs,
  type NotificationRecord,
  notificationCollection,
  notificationHints,
  toRecord,
} from "./notification-document.ts";

/** A small send that waits in its project's backlog. */
export type QueuedSend = {
  readonly document: NotificationRecord;
  /** Its batches as they are to be sent. Empty: an earlier holder of the drain message began it. */
  readonly runs: readonly Run[];
};

const some = { $exists: true } as const;

/**
 * Small sends beyond their project's share. Each is stored whole, with its recipients, and keeps `queued` until its last event is
 * published, so that the next holder of the project's drain message finds what an earlier one left.
 */
export const createBacklogStore = (db: Db) => {
  const notifications = notificationCollection(db);
  const hint = notificationHints.backlog;

  return guardStore({
    /** Some of a project's backlog, by their ids, which begin with the time. */
    read: async (projectId: ProjectId, after: string, limit: number, now: Date): Promise<QueuedSend[]> => {
      const found = await notifications
        .find({ projectId, queued: some, _id: { $gt: after as NotificationId } }, { hint, batchSize: limit + 1 })
        .sort({ _id: 1 })
        .limit(limit)
        .toArray();
      return found.map((document) => ({
        document: toRecord(document),
        runs: document.sending || document.final ? [] : runsOf(document, now),
      }));
    },

    /**
     * Begins to send some for a drain message. Resolves to those that are this call's to send; the others were begun or removed
     * meanwhile. Not repeatable: after an error some may have been begun.
     */
    claim: async (
      projectId: ProjectId,
      ids: readonly NotificationId[],
      { at, sequence }: Claim,
      now: Date,
    ): Promise<ReadonlySet<NotificationId>> => {
      const slice = randomUUID();
      const ofSlice = { _id: { $in: ids.toSorted() }, projectId, "sending.slice": slice };
      const { modifiedCount } = await notifications.updateMany(
        { _id: ofSlice._id, projectId, queued: some, rows: some, sending: { $exists: false } },
        {
          $set: {
            sending: { at, sequence, slice, open: true },
            checkAt: new Date(now.getTime() + checkEveryMs),
          },
        },
        { hint: "_id_" },
      );
      if (modifiedCount === ids.length) return new Set(ids);
      const claimed = await notifications.find(ofSlice, { hint: "_id_", projection: { _id: 1 } }).toArray();
      return new Set(claimed.map(({ _id }) => _id));
    },

    /** They are ended, or go on in the ledger of large sends, and their events are published. */
    remove: async (projectId: ProjectId, ids: readonly NotificationId[]): Promise<void> => {
      await notifications.updateMany(
        { _id: { $in: ids.toSorted() }, projectId },
        { $unset: { queued: "" } },
        { hint: "_id_" },
      );
    },

    /** How many a project has waiting, counted up to `limit`. */
    count: (projectId: ProjectId, limit: number): Promise<number> =>
      notifications.countDocuments({ projectId, queued: some }, { hint, limit }),

    /** The first project after this one, by its id, that has a backlog. */
    projectAfter: async (projectId: string): Promise<ProjectId | undefined> => {
      const found = await notifications
        .find({ projectId: { $gt: projectId as ProjectId }, queued: some }, { hint, projection: { projectId: 1 } })
        .sort({ projectId: 1 })
        .limit(1)
        .next();
      return found?.projectId;
    },
  });
};

export type BacklogStore = ReturnType<typeof createBacklogStore>;
