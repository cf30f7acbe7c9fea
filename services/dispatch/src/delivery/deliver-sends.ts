import { fromOrigin } from "@herald/bus";
import type { GroupedSend, SendV1 } from "@herald/contracts";
import { type FairGate, HeraldError } from "@herald/kit";
import type { Claim } from "../stores/delivery-document.ts";
import type { SmallSendStore } from "../stores/small-send-store.ts";
import type { Backlog } from "./backlog.ts";
import type { Resolution, ResolveSend } from "./prepare.ts";
import { isUnavailable } from "./retry-while-unavailable.ts";
import { batchesOf, type SmallSend } from "./small-send.ts";

export type DeliverSendsDeps = {
  readonly resolve: ResolveSend;
  /** How many are delivered at a time, in all and by project; those that wait for their turn cost their memory alone. */
  readonly gate: FairGate;
  /** The same of those that are stored in a backlog. */
  readonly backlogGate: FairGate;
  readonly backlog: Pick<Backlog, "isOpen" | "overflow" | "ensureDrain">;
  /** Publishes the send as a large one. Repeatable. */
  readonly sendAsLarge: (send: SendV1) => Promise<void>;
  readonly sends: Pick<SmallSendStore, "insert" | "findWithEvents">;
  readonly smallSend: SmallSend;
  readonly now: () => Date;
};

/** The message that some sends came in. */
export type SendMessage = {
  readonly claim: Claim;
  readonly signal: AbortSignal;
};

/**
 * Delivers sends to few devices from their audience to their last event: resolve, store, push, settle, publish. The message that brought
 * them is acked after all of that, so it is their outbox and their lease at once. Those beyond their project's share are stored in its
 * backlog, which has a message of its own.
 * Rejects when one of them has to be tried again; the others are done by then, and find that out when they come again.
 */
export const createDeliverSends = (deps: DeliverSendsDeps) => {
  const { resolve, gate, backlogGate, backlog, sendAsLarge, sends, smallSend, now } = deps;

  /** Goes on with one that was stored before, by an earlier delivery of this message or by another. */
  const resume = async (send: GroupedSend, { claim, signal }: SendMessage): Promise<void> => {
    const found = await sends.findWithEvents(send.projectId, send.notificationId);
    if (!found) return; // its project is deleted
    const { document, events } = found;
    if (document.queued) return backlog.ensureDrain(send.projectId);
    // It went the other way before, or is to be expanded because its message was given up.
    if (!document.final && !document.expanded) return sendAsLarge(send);
    const { sending } = document;
    if (sending && (sending.sequence !== claim.sequence || sending.at !== claim.at)) return; // another message's to end
    await smallSend.resume(document, events, claim, signal);
  };

  const store = (send: GroupedSend, resolution: Resolution, claim: Claim | undefined) =>
    sends.insert(send, { batches: batchesOf(send, resolution), unmatched: resolution.unmatched }, claim, now());

  const deliver = async (send: GroupedSend, message: SendMessage): Promise<void> => {
    const resolution = await resolve(send);
    if (!resolution) return sendAsLarge(send);
    const stored = await store(send, resolution, message.claim);
    await (stored ? smallSend.push(stored, message.signal) : resume(send, message));
  };

  /** Puts one behind those of its project that wait. It is done for its message then. */
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

  const one = async (send: GroupedSend, message: SendMessage): Promise<void> => {
    const { projectId } = send;
    if (backlog.isOpen(projectId)) return enqueue(send, message);
    const leave = await gate.enter(projectId, 1).catch((error: unknown) => {
      if (error instanceof HeraldError && error.code === "rate-limited") return undefined;
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
    const done = await Promise.allSettled(
      all.map((send) => fromOrigin("deliver send", send.origin, () => one(send, message))),
    );
    const failed = done.flatMap((each) => (each.status === "rejected" ? [each.reason] : []));
    // What waits for something to come back uses nothing up; it comes again together with the others that failed.
    if (failed.length > 0) throw failed.find(isUnavailable) ?? failed[0];
  };
};

export type DeliverSends = ReturnType<typeof createDeliverSends>;
