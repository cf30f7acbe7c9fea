import { type DeliverBatchV1, type DeviceId, type GroupedSend, isPersonal, type OutboxEvent } from "@herald/contracts";
import { rootBatchId } from "../domain/batch-ids.ts";
import type { Claim } from "../stores/delivery-document.ts";
import type { DeliveryStore } from "../stores/delivery-store.ts";
import type { NotificationRecord, OutboxCarrier } from "../stores/notification-document.ts";
import { notificationAccepted, notificationEnded } from "../stores/notification-events.ts";
import type { SmallSendStore, StoredSend } from "../stores/small-send-store.ts";
import type { Finisher } from "./finish.ts";
import type { NotificationCache } from "./notification-cache.ts";
import type { Pipeline } from "./pipeline.ts";
import type { CheckWaiting, Resolution } from "./prepare.ts";
import { outcomeRetries, retryWhileUnavailable } from "./retry-while-unavailable.ts";

export type SmallSendDeps = {
  readonly sends: SmallSendStore;
  readonly deliveries: Pick<DeliveryStore, "restart">;
  readonly pipeline: Pipeline;
  readonly checkWaiting: CheckWaiting;
  readonly finisher: Pick<Finisher, "check">;
  readonly cache: NotificationCache;
  /** Resolves when the event is on disk. */
  readonly publish: (event: OutboxEvent) => Promise<void>;
  /** Publishes what a notification carries in its outbox. Never throws. */
  readonly publishOutbox: (document: OutboxCarrier) => Promise<void>;
  /** Publishes what rows of the ledger carry in their outboxes. Never throws. */
  readonly flushRows: (projectId: GroupedSend["projectId"], ids: readonly string[]) => Promise<void>;
  readonly now: () => Date;
};

/** The steps of a small send after it is stored. Both may be repeated by the process that holds its message. */
export type SmallSend = {
  /** Pushes it, but not to devices that `moved`, and publishes its events; what does not end at once goes on as large sends do. */
  push(stored: StoredSend, signal: AbortSignal, moved?: ReadonlySet<DeviceId>): Promise<void>;
  /** Goes on with one that an earlier delivery of the message of `claim` began. What was pushed without an outcome is pushed again. */
  resume(
    document: NotificationRecord,
    events: readonly OutboxEvent[],
    claim: Claim,
    signal: AbortSignal,
  ): Promise<void>;
};

const noDevices: ReadonlySet<DeviceId> = new Set();

export const createSmallSend = (deps: SmallSendDeps): SmallSend => {
  const { sends, deliveries, pipeline, checkWaiting, finisher, cache } = deps;
  const now = coarseClock(deps.now);
  const publish = (events: readonly OutboxEvent[]) => Promise.all(events.map(deps.publish));

  return {
    push: async ({ document, runs }, signal, moved = noDevices) => {
      const accepted = notificationAccepted(document, document.content.targets);
      if (document.final) {
        await publish([accepted, notificationEnded(document, document.final)]);
        return;
      }
      const cached = cache.pin(document);
      try {
        const sent = await Promise.all(
          runs.map(async (run) => ({ run, ...(await pipeline.send(run, cached, moved, signal)) })),
        );
        const atOnce = sent.every(({ settlement }) => settlement.waiting === undefined);
        // The pushes are out: until the database is back, only this process has their outcomes.
        const at = now();
        const ended = atOnce
          ? await retryWhileUnavailable(() => sends.end(document, sent, at), signal, outcomeRetries)
          : undefined;
        if (ended) {
          const { final, events, outbox } = ended;
          if (outbox.length > 0) await deps.publishOutbox({ ...document, outbox: [...outbox] });
          await publish([
            accepted,
            ...events.filter((event) => !outbox.includes(event)),
            notificationEnded(document, final),
          ]);
          return;
        }
        // Some wait, or it was cancelled or taken over meanwhile: from here on it is as any other.
        await retryWhileUnavailable(
          () => sends.moveToDeliveries(document.projectId, document._id),
          signal,
          outcomeRetries,
        );
        for (const { run, ...outcome } of sent) await pipeline.complete(run, outcome, signal);
        await publish([accepted]);
      } finally {
        cache.unpin(document._id);
      }
    },

    resume: async (document, events, claim, signal) => {
      const { projectId, _id: notificationId } = document;
      const accepted = notificationAccepted(document, document.content.targets);
      if (document.final) {
        // The same ids again: an earlier try may have ended before they were out.
        await publish([accepted, ...events, notificationEnded(document, document.final)]);
        return;
      }
      await sends.moveToDeliveries(projectId, notificationId);
      // A process may have died right after its last write, before it published the end.
      const late = await sends.findWithEvents(projectId, notificationId);
      if (late?.document.final) {
        await publish([accepted, ...late.events, notificationEnded(late.document, late.document.final)]);
        return;
      }
      const batches = document.expanded?.batches ?? 0;
      const ids = Array.from({ length: batches }, (_, n) => rootBatchId(notificationId, n));
      const personal = isPersonal(document.content.targets);
      for (const id of ids) {
        const run = await deliveries.restart(projectId, id, claim, now());
        if (!run) continue;
        await pipeline.deliver(run, signal, await checkWaiting(projectId, run.devices, personal));
      }
      await publish([accepted]);
      // What was settled while the bus was unavailable need not wait for the sweep.
      await deps.flushRows(projectId, ids);
      await finisher.check(projectId, notificationId);
    },
  };
};

/** The batches of a small send: one for each platform and provider. */
export const batchesOf = (
  { projectId, notificationId }: Pick<GroupedSend, "projectId" | "notificationId">,
  { batches }: Resolution,
): DeliverBatchV1[] =>
  batches.map((batch, n) => ({
    batchId: rootBatchId(notificationId, n),
    projectId,
    notificationId,
    lane: "direct",
    ...batch,
  }));

/** What happens to many sends within this gets one time, so that one update writes it for all of them. */
const sameTimeMs = 10;

const coarseClock = (now: () => Date) => {
  let last = new Date(0);
  return (): Date => {
    const at = now();
    const passed = at.getTime() - last.getTime();
    if (passed < 0 || passed >= sameTimeMs) last = at;
    return last;
  };
};
