import { type Bus, publish, schedule } from "@herald/bus";
import { type ActivityKey, DueV1, type NotificationId, type ProjectId, servingProvider } from "@herald/contracts";
import type { Deps } from "../deps.ts";
import { batchKey, scheduleSubject } from "../domain/batch.ts";
import { emptyTally } from "../domain/notification-counts.ts";
import { pauseOf } from "../project-rules.ts";
import type { BatchFacts } from "../stores/delivery-document.ts";
import type { DeliveryStore } from "../stores/delivery-store.ts";
import type { NotificationState } from "../stores/notification-document.ts";

/** What an activity has to do for its channels. Each has a schedule of its own. */
type ActivityDue = ActivityKey & { readonly purpose: "broadcast" | "clean" };

/** A waiting ledger row, a scheduled notification, or an activity. */
type Due =
  | Pick<BatchFacts, "_id" | "projectId" | "generation">
  | { readonly _id: NotificationId; readonly projectId: ProjectId }
  | ActivityDue;

const dueMessage = (due: Due): DueV1 => {
  const { projectId } = due;
  if ("purpose" in due) return { kind: "activity", projectId, key: `${projectId}-${due.id}`, id: due.id };
  const { _id: id } = due;
  return { kind: "generation" in due ? "batch" : "notification", projectId, key: batchKey(id), id };
};

const partOf = (due: Due): number | string =>
  "purpose" in due ? due.purpose : "generation" in due ? due.generation : 0;

/** Publishes messages that start a waiting ledger row or a scheduled notification. Each call resolves after the stream's ack. */
export const createDueMessages = (bus: Bus) => ({
  /** Schedules the start for `at`, in place of an earlier schedule. */
  schedule: (due: Due, at: Date): Promise<void> => {
    const data = dueMessage(due);
    const subject = scheduleSubject(data.key, partOf(due));
    // The time is part of the id: the same message for a later time is not a duplicate.
    return schedule(bus, { subject, at, contract: DueV1, data, id: `${subject}/due/${at.getTime()}` });
  },
  /** Publishes the start now. The stream drops a repeat for the same `dueAt` as a duplicate. */
  publish: async (due: Exclude<Due, ActivityDue>, dueAt: Date): Promise<void> => {
    await publish(bus, DueV1, dueMessage(due), { id: `${due._id}/wake/${dueAt.getTime()}` });
  },
});

export type DueMessages = ReturnType<typeof createDueMessages>;

export type FollowUpDeps = Pick<Deps, "credentials" | "deliveries" | "notifications" | "now" | "pool" | "rules"> & {
  readonly finisher: Finisher;
  readonly dueMessages: DueMessages;
};

export const createFollowUp = (deps: FollowUpDeps) => {
  const { deliveries, notifications, credentials, pool, rules, finisher, dueMessages, now } = deps;
  const plan = async (
    child: NonNullable<Awaited<ReturnType<DeliveryStore["storeChild"]>>>,
    version: string | undefined,
  ): Promise<void> => {
    const { projectId, notificationId, dueAt, paused, held } = child;
    await dueMessages.schedule(child, dueAt);
    const { stop, paused: isPaused } = (held && (await notifications.getState(projectId, notificationId))) || {};
    if (held && (stop || !(isPaused || pauseOf(rules, projectId)))) {
      // Resumed or stopped since it was held: that found only the rows that waited then.
      const at = now();
      await deliveries.resumeHeld({ projectId, notificationId }, at);
      await dueMessages.publish(child, at);
    }
    if (!paused && version === undefined) return;
    // If settings changed after the attempt, they resumed only the rows that waited then, not this child.
    const provider = servingProvider(child);
    const credential = await credentials.find(projectId, provider);
    if (credential?.paused || (!paused && credential?.version === version)) return;
    // The provider has just refused this version here. The database does not have the pause yet, and a retry would be refused again.
    if (credential && pool.refused(credential)) return;
    pool.forget(projectId, provider);
    await deliveries.resume(projectId, provider, now());
  };

  /**
   * Follows up a settled row: stores and schedules its child row, or checks for the end of the notification. Repeatable.
   * `version`: the version of the settings that the row was sent with, if the caller knows it.
   */
  return async (batch: BatchFacts, version?: string): Promise<void> => {
    const child = await deliveries.storeChild(batch);
    if (child) await plan(child, version);
    else await finisher.check(batch.projectId, batch.notificationId);
  };
};

/** The rows of a notification with so few batches are read at once. Those of others are read when all of them are final. */
const fewBatches = 16;

/** After a lost expansion, batches that registry published earlier may still be in the queue for this long. */
const lostExpansionMs = 60_000;

type FinisherDeps = Pick<Deps, "ledger" | "notifications" | "now" | "outbox" | "recipients">;

export const createFinisher = ({ notifications, recipients, ledger, outbox, now }: FinisherDeps) => {
  /** The final counts. Undefined while a device has no final state. */
  const finalSums = async ({ projectId, _id, expanded, step }: NotificationState) => {
    if (!expanded || step !== "delivering") return undefined;
    const { batches, lost } = expanded;
    if (lost) {
      if (now().getTime() - lost.getTime() < lostExpansionMs) return undefined;
      const sums = await ledger.sums(projectId, _id);
      return sums.finalRoots === undefined ? undefined : sums;
    }
    if (batches === 0) return { tally: emptyTally, failures: {} };
    const isEnough = (finalRoots = -1) => finalRoots >= batches;
    if (batches > fewBatches && !isEnough(await ledger.finalRoots(projectId, _id))) return undefined;
    const sums = await ledger.sums(projectId, _id);
    return isEnough(sums.finalRoots) ? sums : undefined;
  };

  /** Corrects the final counts of a notification whose lost expansion was partitioned, by a replay, after the end. */
  const amend = async ({ projectId, _id }: NotificationState): Promise<void> => {
    const sums = await ledger.sums(projectId, _id);
    if (sums.finalRoots !== undefined) await notifications.amend(projectId, _id, sums);
  };

  return {
    /**
     * Ends a notification if every device has its final state. Runs after the write of `expanded` and of each row, so the last of them
     * ends it.
     */
    check: async (projectId: ProjectId, id: NotificationId): Promise<void> => {
      for (;;) {
        const document = await notifications.getState(projectId, id);
        if (!document) return;
        if (document.end) return document.expanded?.lost ? amend(document) : undefined;
        const sums = await finalSums(document);
        if (!sums) return;
        // Every device has its result: their values are not needed any more, unless batches may still come.
        if (document.listed && !document.expanded?.lost) await recipients.removeValues(projectId, id);
        const written = await notifications.finish(document, { ...sums, now: now() });
        if (written) return outbox.publishEnd(written);
        // It was cancelled, or another process has ended it: read it again.
      }
    },
  };
};

export type Finisher = ReturnType<typeof createFinisher>;
