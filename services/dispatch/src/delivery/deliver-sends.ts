import { type Bus, fromOrigin, groupedPublish } from "@herald/bus";
import { type DeliverBatchV1, type GroupedSend, type NotificationId, type ProjectId, SendV1 } from "@herald/contracts";
import { type FairGate, hasCode, isUnavailable } from "@herald/kit";
import type { Deps } from "../deps.ts";
import { rootBatchId } from "../domain/batch.ts";
import type { Claim } from "../stores/delivery-document.ts";
import type { StoredSend } from "../stores/small-send-store.ts";
import type { createResolveSend, SendAudience } from "./prepare.ts";
import type { SmallSend } from "./small-send.ts";

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

/** For which message a send is delivered. `again`: an earlier delivery of the message may have begun it. */
export type ForMessage = { readonly claim: Claim; readonly signal: AbortSignal; readonly again: boolean };

type DeliverSendDeps = Deps & {
  readonly resolve: ReturnType<typeof createResolveSend>;
  readonly sendAsLarge: ReturnType<typeof createSendAsLarge>;
  readonly smallSend: SmallSend;
};

/**
 * Delivers a small send from its audience to its last event: resolve, store, push, settle, publish. Rejects when it must be retried; the
 * next call finds what this one did.
 */
export const createDeliverSend = (deps: DeliverSendDeps) => {
  const { sendAsLarge, notifications, sends, smallSend, now } = deps;

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

  const store = (send: GroupedSend, resolution: SendAudience, claim: Claim): Promise<StoredSend | null> =>
    sends.insert(send, { batches: batchesOfSend(send, resolution), unmatched: resolution.unmatched }, claim, now());

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
