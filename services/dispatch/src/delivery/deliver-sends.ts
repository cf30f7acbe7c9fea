import { type Bus, fromOrigin, groupedPublish } from "@herald/bus";
import {
  type DeliverBatchV1,
  type GroupedSend,
  type NotificationId,
  type OutboxEvent,
  type ProjectId,
  SendV1,
} from "@herald/contracts";
import { type FairGate, growingPause, hasCode, isUnavailable, retryWhileUnavailable } from "@herald/kit";
import type { Deps } from "../deps.ts";
import { rootBatchId } from "../domain/batch.ts";
import { noneSkipped } from "../domain/settle-row.ts";
import type { Claim } from "../stores/delivery-document.ts";
import { eventsOfSend } from "../stores/events.ts";
import type { NotificationRecord } from "../stores/notification-document.ts";
import type { EvaluatedBatch, StoredSend } from "../stores/small-send-store.ts";
import type { Finisher } from "./follow-up.ts";
import { isForOneUser, type NotificationCache } from "./notification-cache.ts";
import { outcomeRetries, type Pipeline } from "./pipeline.ts";
import type { CheckWaiting, createResolveSend, SendAudience } from "./prepare.ts";
import type { RuleEvaluator } from "./rule-evaluator.ts";

/** The batches of a small send: one for each platform and provider. */
export const batchesOfSend = (
  { projectId, notificationId }: Pick<GroupedSend, "projectId" | "notificationId">,
  { batches }: SendAudience,
): DeliverBatchV1[] =>
  batches.map((batch, n) => ({
    batchId: rootBatchId(notificationId, n),
    projectId,
    notificationId,
    lane: "direct",
    ...batch,
  }));

/** Publishes the send as a large one. Repeatable. */
export const createSendAsLarge = (bus: Bus) => {
  const publish = groupedPublish(() => bus, SendV1);
  return (send: SendV1): Promise<void> => publish(SendV1.schema.parse(send), send.notificationId);
};

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
    await deps.publish(eventsOfSend(document, events));
  };

  return {
    /** Pushes a send, and publishes its events. A send that does not end at once continues as a large send. */
    push: async ({ document, runs }: StoredSend, signal: AbortSignal): Promise<void> => {
      if (document.end) return publish(document);
      const cached = cache.pin(document);
      try {
        const sent = await Promise.all(
          runs.map(async (run) => ({ run, ...(await pipeline.send(run, cached, noneSkipped, signal)) })),
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
      const personal = isForOneUser(document);
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

/** For which message a send is delivered. `again`: an earlier delivery of the message may have begun it. */
export type ForMessage = { readonly claim: Claim; readonly signal: AbortSignal; readonly again: boolean };

type DeliverSendDeps = Pick<Deps, "notifications" | "now" | "sends"> & {
  readonly evaluator: RuleEvaluator;
  readonly resolve: ReturnType<typeof createResolveSend>;
  readonly sendAsLarge: ReturnType<typeof createSendAsLarge>;
  readonly smallSend: ReturnType<typeof createSmallSend>;
};

/**
 * Delivers a small send from its audience to its last event: resolve, store, push, settle, publish. Rejects when it must be retried; the
 * next call finds what this one did.
 */
export const createDeliverSend = (deps: DeliverSendDeps) => {
  const { sendAsLarge, notifications, sends, smallSend, evaluator, now } = deps;

  type Found = NonNullable<Awaited<ReturnType<typeof sends.findWithEvents>>>;
  const find = ({ projectId, notificationId }: GroupedSend) => sends.findWithEvents(projectId, notificationId);

  /** Continues a send that an earlier delivery of this message, or another message, stored. */
  const resume = async (
    send: GroupedSend,
    { document, events }: Found,
    { claim, signal }: ForMessage,
  ): Promise<void> => {
    // It became a large send, perhaps because its message was dead-lettered.
    if (!document.end && (!document.expanded || document.expanded.lost)) return sendAsLarge(send);
    const holder = document.step === "sending" ? document.claim : undefined;
    if (holder && (holder.sequence !== claim.sequence || holder.at !== claim.at)) return; // another message's to end
    await smallSend.resume(document, events, claim, signal);
  };

  const resolve = async (send: GroupedSend): Promise<SendAudience | null> => {
    try {
      return await deps.resolve(send);
    } catch (error) {
      if (hasCode(error, "process-crashed")) {
        // The dead-letter handler would make it a large send, whose expansion would end registry's processes again.
        await notifications.insertAbandoned(send, now());
        await notifications.expansionLost(send.projectId, send.notificationId, now());
      }
      throw error;
    }
  };

  /** Evaluates the rules for its devices, and stores the results with the send: a redelivery reads them. */
  const store = async (send: GroupedSend, resolution: SendAudience, claim: Claim): Promise<StoredSend | null> => {
    const { projectId, notificationId: _id, content } = send;
    const sent = { _id, projectId, content, expiresAt: new Date(send.expiresAt) };
    const batches = await Promise.all(
      batchesOfSend(send, resolution).map(
        async (batch): Promise<EvaluatedBatch> => ({
          ...batch,
          ruleResults: await evaluator.evaluate(sent, batch.devices),
        }),
      ),
    );
    return sends.insert(send, { ...resolution, batches }, claim, now());
  };

  return async (send: GroupedSend, message: ForMessage): Promise<void> => {
    // Before its audience is read: a send that has begun keeps its devices, also if it would be a large one by now.
    const known = message.again ? await find(send) : null;
    if (known) return resume(send, known, message);
    const resolution = await resolve(send);
    if (!resolution) return sendAsLarge(send);
    const stored = await store(send, resolution, message.claim);
    if (stored) return smallSend.push(stored, message.signal);
    const found = await find(send);
    if (found) await resume(send, found, message); // otherwise its project is deleted
  };
};

export type DeliverSend = ReturnType<typeof createDeliverSend>;

type DeliverSendsDeps = Pick<Deps, "sendGroups"> & {
  readonly deliverSend: DeliverSend;
  /** Limits how many sends are delivered at a time, in total and by project. Waiting sends only cost memory. */
  readonly gate: FairGate;
  readonly backlog: {
    isOpen(projectId: ProjectId): boolean;
    park(projectId: ProjectId, sends: readonly GroupedSend[], claim: Claim): Promise<void>;
  };
};

/** The message that contained the sends. */
export type SendMessage = ForMessage & { readonly bytes: number };

const none: ReadonlySet<NotificationId> = new Set();

/**
 * Delivers the small sends of a message. The message is acked after their last events, so it serves as both outbox and lease. Sends beyond
 * their project's share wait in its backlog, which has its own message. Rejects when a send must be retried. The other sends are done by
 * then, and the redelivery detects that.
 */
export const createDeliverSends = ({ sendGroups, deliverSend, gate, backlog }: DeliverSendsDeps) => {
  const one = (send: GroupedSend, message: SendMessage, weight: number): Promise<void> =>
    fromOrigin("deliver send", send.origin, async () => {
      const leave = await gate.enter(send.projectId, 1, { weight });
      try {
        await deliverSend(send, message);
      } finally {
        leave();
      }
    });

  return async (all: readonly GroupedSend[], message: SendMessage): Promise<void> => {
    const weight = Math.ceil(message.bytes / all.length);
    const parked = message.again ? await sendGroups.waitingOf(all) : none;
    const beyond: GroupedSend[] = [];
    const running: Promise<void>[] = [];
    for (const send of all) {
      const { projectId, notificationId } = send;
      const waits = parked.has(notificationId);
      if (!waits && (backlog.isOpen(projectId) || gate.isFull(projectId, weight))) beyond.push(send);
      else if (!waits) running.push(one(send, message, weight));
    }
    for (const [projectId, some] of Map.groupBy(beyond, (send) => send.projectId))
      running.push(backlog.park(projectId, some, message.claim));
    const done = await Promise.allSettled(running);
    const failed = done.flatMap((each) => (each.status === "rejected" ? [each.reason] : []));
    // An error of an unavailable dependency comes first: it uses up no delivery attempt. The redelivery repeats all failed sends.
    if (failed.length > 0) throw failed.find(isUnavailable) ?? failed[0];
  };
};

export type DeliverSends = ReturnType<typeof createDeliverSends>;
