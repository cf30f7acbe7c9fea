import { isPersonal, type OutboxEvent } from "@herald/contracts";
import { growingPause, retryWhileUnavailable } from "@herald/kit";
import type { Deps } from "../deps.ts";
import { rootBatchId } from "../domain/batch.ts";
import type { Claim } from "../stores/delivery-document.ts";
import { eventsOfSend } from "../stores/events.ts";
import type { NotificationRecord } from "../stores/notification-document.ts";
import type { StoredSend } from "../stores/small-send-store.ts";
import type { Finisher } from "./follow-up.ts";
import type { NotificationCache } from "./notification-cache.ts";
import { outcomeRetries, type Pipeline } from "./pipeline.ts";
import { type CheckWaiting, noneMoved } from "./prepare.ts";

export type SmallSendDeps = Pick<Deps, "sends" | "deliveries" | "publish" | "outbox" | "now"> & {
  readonly pipeline: Pipeline;
  readonly checkWaiting: CheckWaiting;
  readonly finisher: Pick<Finisher, "check">;
  readonly cache: NotificationCache;
};

/** The steps of a small send after it is stored. Both are repeatable by the process that holds its message. */
export const createSmallSend = (deps: SmallSendDeps) => {
  const { sends, deliveries, outbox, pipeline, checkWaiting, finisher, cache } = deps;
  const now = coarseClock(deps.now);
  /** Publishes the events of a send so far. A repeat has the same ids. */
  const publish = async (
    document: Parameters<typeof eventsOfSend>[0],
    events?: readonly OutboxEvent[],
  ): Promise<void> => {
    await Promise.all(eventsOfSend(document, events).map(deps.publish));
  };

  return {
    /** Pushes a send, and publishes its events. A send that does not end at once continues as a large send. */
    push: async ({ document, runs }: StoredSend, signal: AbortSignal): Promise<void> => {
      if (document.end) return publish(document);
      const cached = cache.pin(document);
      try {
        const sent = await Promise.all(
          runs.map(async (run) => ({ run, ...(await pipeline.send(run, cached, noneMoved, signal)) })),
        );
        const atOnce = sent.every(({ settlement }) => settlement.waiting === undefined);
        // The pushes are out: until the database is back, only this process has their outcomes.
        const at = now();
        const ended = atOnce
          ? await retryWhileUnavailable(() => sends.end(document, sent, at), growingPause(signal), outcomeRetries)
          : undefined;
        if (ended) {
          const { state, events, stored } = ended;
          if (stored.length > 0) await outbox.publishEnd({ ...document, outbox: [...stored] });
          const rest = events.filter((event) => !stored.includes(event));
          return await publish({ ...document, ...state }, rest);
        }
        // Some devices wait, or the send was cancelled or taken over: it continues as a large send.
        await retryWhileUnavailable(
          () => sends.moveToDeliveries(document.projectId, document._id),
          growingPause(signal),
          outcomeRetries,
        );
        for (const { run, ...outcome } of sent) await pipeline.complete(run, outcome, signal);
        await publish(document);
      } finally {
        cache.unpin(document._id);
      }
    },

    /** Continues a send that an earlier delivery of the message in `claim` began. Repeats pushes whose outcomes were not written. */
    resume: async (
      document: NotificationRecord,
      events: readonly OutboxEvent[],
      claim: Claim,
      signal: AbortSignal,
    ): Promise<void> => {
      const { projectId, _id: notificationId } = document;
      if (document.end) return publish(document, events);
      await sends.moveToDeliveries(projectId, notificationId);
      // Another process may have ended the send since it was read, and died before it published the end.
      const late = await sends.findWithEvents(projectId, notificationId);
      if (late?.document.end) return publish(late.document, late.events);
      const batches = document.expanded?.batches ?? 0;
      const ids = Array.from({ length: batches }, (_, n) => rootBatchId(notificationId, n));
      const personal = isPersonal(document.content.targets);
      for (const id of ids) {
        const run = await deliveries.restart(projectId, id, claim, now());
        if (!run) continue;
        await pipeline.deliver(run, signal, await checkWaiting(projectId, run.devices, personal));
      }
      await publish(document);
      // So that events of rows settled while the bus was unavailable need not wait for the sweep.
      await outbox.flushRows(projectId, ids);
      await finisher.check(projectId, notificationId);
    },
  };
};

export type SmallSend = ReturnType<typeof createSmallSend>;

/** Sends that end within this interval get the same time, so that one update writes many of them. */
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
