import { fromOrigin } from "@herald/bus";
import {
  type DeliverBatchV1,
  type DeviceId,
  type GroupedSend,
  isPersonal,
  type OutboxEvent,
  type ProjectId,
  type SendV1,
} from "@herald/contracts";
import { type FairGate, HeraldError } from "@herald/kit";
import { rootBatchId } from "../domain/batch-ids.ts";
import type { Claim } from "../stores/delivery-document.ts";
import type { DeliveryStore } from "../stores/delivery-store.ts";
import type { Told } from "../stores/notification-document.ts";
import { notificationAccepted, notificationEnded } from "../stores/notification-events.ts";
import type { SmallSendStore, StoredSend } from "../stores/small-send-store.ts";
import type { Finisher } from "./finish.ts";
import { isUnavailable, keepTrying, outcomeTries } from "./keep-trying.ts";
import type { NotificationWatch } from "./notification-watch.ts";
import type { Pipeline } from "./pipeline.ts";
import type { CheckWaiting, Resolution, ResolveSend } from "./prepare.ts";

export type DeliverSendsDeps = {
  readonly resolve: ResolveSend;
  /** How many are delivered at a time, in all and by project; those that wait for their turn cost their memory alone. */
  readonly gate: FairGate;
  /** Gives a send to the path for large ones. Repeatable. */
  readonly handOn: (send: SendV1) => Promise<void>;
  readonly sends: SmallSendStore;
  readonly deliveries: Pick<DeliveryStore, "restart">;
  readonly pipeline: Pipeline;
  readonly checkWaiting: CheckWaiting;
  readonly finisher: Pick<Finisher, "check">;
  readonly watch: NotificationWatch;
  /** Resolves when the event is on disk. */
  readonly publish: (event: OutboxEvent) => Promise<void>;
  /** Publishes what a notification carries in its outbox. Never throws. */
  readonly announce: (told: Told) => Promise<void>;
  /** Publishes what rows of the ledger carry in their outboxes. Never throws. */
  readonly flushRows: (projectId: ProjectId, ids: readonly string[]) => Promise<void>;
  readonly now: () => Date;
};

const noDevices: ReadonlySet<DeviceId> = new Set();

/** The message that some sends came in. */
export type SendMessage = {
  readonly claim: Claim;
  /** It came before, and how far it got is not known. */
  readonly redelivered: boolean;
  readonly signal: AbortSignal;
};

/**
 * Delivers sends to few devices from their audience to their last event: resolve, store, push, settle, publish. The message that brought
 * them is acked after all of that, so it is their outbox and their lease at once.
 * Rejects when one of them has to be tried again; the others are done by then, and find that out when they come again.
 */
export const createDeliverSends = (deps: DeliverSendsDeps) => {
  const { resolve, gate, handOn, sends, deliveries, pipeline, checkWaiting, finisher, watch } = deps;
  const now = coarseClock(deps.now);
  const publish = (events: readonly OutboxEvent[]) => Promise.all(events.map(deps.publish));

  const deliver = async (send: GroupedSend, resolution: Resolution, message: SendMessage): Promise<void> => {
    const found = { batches: batchesOf(send, resolution), unmatched: resolution.unmatched };
    const stored = await sends.insert(send, found, message.claim, now());
    await (stored ? pushAll(send, stored, message.signal) : resume(send, message));
  };

  const pushAll = async (send: GroupedSend, { document, runs }: StoredSend, signal: AbortSignal): Promise<void> => {
    const accepted = notificationAccepted(document, send.content.targets);
    if (document.final) {
      await publish([accepted, notificationEnded(document, document.final)]);
      return;
    }
    const watched = watch.pin(document);
    try {
      const sent = await Promise.all(
        runs.map(async (run) => ({ run, ...(await pipeline.send(run, watched, noDevices, signal)) })),
      );
      const atOnce = sent.every(({ settlement }) => settlement.waiting === undefined);
      // What was sent is sent: while the database is unavailable the outcomes are kept here, and nowhere else.
      const at = now();
      const ended = atOnce ? await keepTrying(() => sends.end(document, sent, at), signal, outcomeTries) : undefined;
      if (ended) {
        const { final, events, outbox } = ended;
        if (outbox.length > 0) await deps.announce({ ...document, outbox: [...outbox] });
        await publish([
          accepted,
          ...events.filter((event) => !outbox.includes(event)),
          notificationEnded(document, final),
        ]);
        return;
      }
      // Some wait, or it was cancelled or taken over meanwhile: from here on it is as any other.
      await keepTrying(() => sends.spill(document.projectId, document._id), signal, outcomeTries);
      for (const { run, ...outcome } of sent) await pipeline.complete(run, outcome, signal);
      await publish([accepted]);
    } finally {
      watch.unpin(document._id);
    }
  };

  /** Goes on with one that was stored before, by an earlier delivery of this message or by another. */
  const resume = async (send: GroupedSend, { claim, signal }: SendMessage): Promise<void> => {
    const { projectId, notificationId } = send;
    const found = await sends.findWithEvents(projectId, notificationId);
    if (!found) return; // its project is deleted
    const { document, events } = found;
    const accepted = notificationAccepted(document, document.content.targets);
    if (document.final) {
      // The same ids again: an earlier try may have ended before they were out.
      await publish([accepted, ...events, notificationEnded(document, document.final)]);
      return;
    }
    // It went the other way before, or is to be expanded because its message was given up.
    if (!document.expanded) return handOn(send);
    const { sending } = document;
    if (sending && (sending.sequence !== claim.sequence || sending.at !== claim.at)) return; // another message's to end
    await sends.spill(projectId, notificationId);
    const ids = Array.from({ length: document.expanded.batches }, (_, n) => rootBatchId(notificationId, n));
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
  };

  const one = async (send: GroupedSend, message: SendMessage): Promise<void> => {
    // A project with so much waiting goes the way of large sends, whose queues are on disk.
    const leave = await gate.enter(send.projectId, 1).catch((error: unknown) => {
      if (error instanceof HeraldError && error.code === "rate-limited") return undefined;
      throw error;
    });
    if (leave === undefined) return handOn(send);
    try {
      const resolution = await resolve(send);
      await (resolution ? deliver(send, resolution, message) : handOn(send));
    } finally {
      leave();
    }
  };

  return async (all: readonly GroupedSend[], message: SendMessage): Promise<void> => {
    const done = await Promise.allSettled(
      all.map((send) => fromOrigin("deliver send", send.origin, () => one(send, message))),
    );
    const failed = done.flatMap((each) => (each.status === "rejected" ? [each.reason] : []));
    // What waits for something to come back uses nothing up; it comes again together with the others that failed.
    if (failed.length > 0) throw failed.find(isUnavailable) ?? failed[0];
  };
};

const batchesOf = ({ projectId, notificationId }: GroupedSend, { batches }: Resolution): DeliverBatchV1[] =>
  batches.map(({ platform, devices }, n) => ({
    batchId: rootBatchId(notificationId, n),
    projectId,
    notificationId,
    lane: "direct",
    platform,
    devices,
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

export type DeliverSends = ReturnType<typeof createDeliverSends>;
