import { type Bus, fromOrigin, groupedPublish } from "@herald/bus";
import {
  type DeliverBatchV1,
  type DeviceId,
  type GroupedSend,
  isPersonal,
  type OutboxEvent,
  type ProjectId,
  SendV1,
} from "@herald/contracts";
import { type FairGate, growingPause, hasCode, isUnavailable, retryWhileUnavailable } from "@herald/kit";
import type { Deps } from "../deps.ts";
import { rootBatchId } from "../domain/batch.ts";
import type { Claim } from "../stores/delivery-document.ts";
import { eventsOfSend } from "../stores/events.ts";
import type { NotificationRecord } from "../stores/notification-document.ts";
import type { StoredSend } from "../stores/small-send-store.ts";
import type { Finisher } from "./follow-up.ts";
import type { NotificationCache } from "./notification-cache.ts";
import { outcomeRetries, type Pipeline } from "./pipeline.ts";
import { type CheckWaiting, type createResolveSend, noDevices, type Resolution } from "./prepare.ts";

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
  const publish = async (document: NotificationRecord, events?: readonly OutboxEvent[]): Promise<void> => {
    await Promise.all(eventsOfSend(document, events).map(deps.publish));
  };

  return {
    /** Pushes a send except to devices in `moved`, and publishes its events. A send that does not end at once continues as a large send. */
    push: async (
      { document, runs }: StoredSend,
      signal: AbortSignal,
      moved: ReadonlySet<DeviceId> = noDevices,
    ): Promise<void> => {
      if (document.final) return publish(document);
      const cached = cache.pin(document);
      try {
        const sent = await Promise.all(
          runs.map(async (run) => ({ run, ...(await pipeline.send(run, cached, moved, signal)) })),
        );
        const atOnce = sent.every(({ settlement }) => settlement.waiting === undefined);
        // The pushes are out: until the database is back, only this process has their outcomes.
        const at = now();
        const ended = atOnce
          ? await retryWhileUnavailable(() => sends.end(document, sent, at), growingPause(signal), outcomeRetries)
          : undefined;
        if (ended) {
          const { final, events, stored } = ended;
          if (stored.length > 0) await outbox.publishEnd({ ...document, outbox: [...stored] });
          const rest = events.filter((event) => !stored.includes(event));
          return await publish({ ...document, final }, rest);
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
      if (document.final) return publish(document, events);
      await sends.moveToDeliveries(projectId, notificationId);
      // Another process may have ended the send since it was read, and died before it published the end.
      const late = await sends.findWithEvents(projectId, notificationId);
      if (late?.document.final) return publish(late.document, late.events);
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

type DeliverSendsDeps = Deps & {
  readonly resolve: ReturnType<typeof createResolveSend>;
  /** Limits how many sends are delivered at a time, in total and by project. Waiting sends only cost memory. */
  readonly gate: FairGate;
  /** Limits how many sends are stored in a backlog at a time. */
  readonly backlogGate: FairGate;
  readonly backlog: {
    isOpen(projectId: ProjectId): boolean;
    overflow(projectId: ProjectId): void;
    ensureDrain(projectId: ProjectId): Promise<void>;
  };
  readonly sendAsLarge: ReturnType<typeof createSendAsLarge>;
  readonly smallSend: SmallSend;
};

/** Publishes the send as a large one. Repeatable. */
export const createSendAsLarge = (bus: Bus) => {
  const publish = groupedPublish(() => bus, SendV1);
  return (send: SendV1): Promise<void> => publish(SendV1.schema.parse(send), send.notificationId);
};

/** The message that contained the sends. */
type SendMessage = { readonly claim: Claim; readonly signal: AbortSignal; readonly bytes: number };

/**
 * Delivers small sends from their audience to their last event: resolve, store, push, settle, publish. Their message is acked after
 * that, so it serves as both outbox and lease. Sends beyond their project's share are stored in its backlog, which has its own message.
 * Rejects when a send must be retried. The other sends are done by then, and the redelivery detects that.
 */
export const createDeliverSends = (deps: DeliverSendsDeps) => {
  const { gate, backlogGate, backlog, sendAsLarge, notifications, sends, smallSend, now } = deps;

  /** Continues a send that an earlier delivery of this message, or another message, stored. */
  const resume = async (send: GroupedSend, { claim, signal }: SendMessage): Promise<void> => {
    const found = await sends.findWithEvents(send.projectId, send.notificationId);
    if (!found) return; // its project is deleted
    const { document, events } = found;
    if (document.queued) return backlog.ensureDrain(send.projectId);
    // It became a large send, perhaps because its message was dead-lettered.
    if (!document.final && !document.expanded) return sendAsLarge(send);
    const { sending } = document;
    if (sending && (sending.sequence !== claim.sequence || sending.at !== claim.at)) return; // another message's to end
    await smallSend.resume(document, events, claim, signal);
  };

  const resolve = async (send: GroupedSend): Promise<Resolution | null> => {
    try {
      return await deps.resolve(send);
    } catch (error) {
      if (hasCode(error, "process-crashed")) {
        // The dead-letter handler would make it a large send, whose expansion would end registry's processes again.
        await notifications.insert(send, now(), { abandonedAt: now() });
        await notifications.expansionLost(send.projectId, send.notificationId, now());
      }
      throw error;
    }
  };

  const store = (send: GroupedSend, resolution: Resolution, claim: Claim | undefined) =>
    sends.insert(send, { batches: batchesOf(send, resolution), unmatched: resolution.unmatched }, claim, now());

  const deliver = async (send: GroupedSend, message: SendMessage): Promise<void> => {
    const resolution = await resolve(send);
    if (!resolution) return sendAsLarge(send);
    const stored = await store(send, resolution, message.claim);
    await (stored ? smallSend.push(stored, message.signal) : resume(send, message));
  };

  /** Stores a send in its project's backlog. Its own message is then done with it. */
  const enqueue = async (send: GroupedSend, message: SendMessage): Promise<void> => {
    const leave = await backlogGate.enter(send.projectId, 1);
    try {
      const resolution = await resolve(send);
      if (!resolution) return sendAsLarge(send);
      const stored = await store(send, resolution, undefined);
      if (!stored) return resume(send, message);
      await (stored.document.final ? smallSend.push(stored, message.signal) : backlog.ensureDrain(send.projectId));
    } finally {
      leave();
    }
  };

  const one = async (send: GroupedSend, message: SendMessage, weight: number): Promise<void> => {
    const { projectId } = send;
    if (backlog.isOpen(projectId)) return enqueue(send, message);
    const leave = await gate.enter(projectId, 1, { weight }).catch((error: unknown) => {
      if (hasCode(error, "rate-limited")) return undefined;
      throw error;
    });
    if (leave === undefined) {
      backlog.overflow(projectId);
      return enqueue(send, message);
    }
    try {
      await deliver(send, message);
    } finally {
      leave();
    }
  };

  return async (all: readonly GroupedSend[], message: SendMessage): Promise<void> => {
    const weight = Math.ceil(message.bytes / all.length);
    const done = await Promise.allSettled(
      all.map((send) => fromOrigin("deliver send", send.origin, () => one(send, message, weight))),
    );
    const failed = done.flatMap((each) => (each.status === "rejected" ? [each.reason] : []));
    // An error of an unavailable dependency comes first: it uses up no delivery attempt. The redelivery repeats all failed sends.
    if (failed.length > 0) throw failed.find(isUnavailable) ?? failed[0];
  };
};

export type DeliverSends = ReturnType<typeof createDeliverSends>;
