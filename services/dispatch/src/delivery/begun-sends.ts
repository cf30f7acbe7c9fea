import { type Bus, fromOrigin, groupedPublish } from "@herald/bus";
import { type GroupedSend, SendV1 } from "@herald/contracts";
import type { Deps } from "../deps.ts";
import { rootBatchId } from "../domain/batch.ts";
import { type Claim, isSameClaim } from "../stores/delivery-document.ts";
import { eventsOfSend } from "../stores/events.ts";
import type { FoundSend } from "../stores/small-send-store.ts";
import type { Finisher } from "./follow-up.ts";
import { isForOneUser } from "./notification-cache.ts";
import type { Pipeline } from "./pipeline.ts";
import type { CheckWaiting } from "./prepare.ts";
import type { RecoverLostWork } from "./recover-lost-work.ts";

/** Publishes the send as a large one. Repeatable. */
export const createSendAsLarge = (bus: Bus) => {
  const publish = groupedPublish(() => bus, SendV1);
  return (send: SendV1): Promise<void> => publish(SendV1.schema.parse(send), send.notificationId);
};

/** A send that failed, and why. */
export type FailedSend = { readonly send: GroupedSend; readonly error: unknown };

export const failedWith = (error: unknown, sends: readonly GroupedSend[]): FailedSend[] =>
  sends.map((send) => ({ send, error }));

/**
 * The message for which sends are delivered. `again`: an earlier delivery of it, or an earlier try in this process, may have begun its
 * sends.
 */
export type GroupMessage = { readonly claim: Claim; readonly signal: AbortSignal; readonly again: boolean };

export type BegunSendsDeps = Pick<Deps, "sends" | "deliveries" | "publish" | "outbox" | "now"> & {
  readonly pipeline: Pick<Pipeline, "deliver">;
  readonly checkWaiting: CheckWaiting;
  readonly finisher: Pick<Finisher, "check">;
  readonly release: RecoverLostWork["release"];
  readonly sendAsLarge: ReturnType<typeof createSendAsLarge>;
};

/** Small sends that an earlier delivery of their message, or another message, has begun. */
export const createBegunSends = (deps: BegunSendsDeps) => {
  const { sends, deliveries, outbox, pipeline, checkWaiting, finisher, release, sendAsLarge, now } = deps;
  /** Publishes the events of a send so far. A repeat has the same ids. */
  const publish = ({ document, events }: FoundSend) => deps.publish(eventsOfSend(document, events));

  /** The state of a send: a large one has messages of its own, and so has what another message began. */
  const stateOf = ({ document }: FoundSend, claim: Claim): "ended" | "large" | "ours" | "of another" => {
    const { end, expanded, step } = document;
    if (end) return "ended";
    // It became a large send, perhaps because its message was dead-lettered.
    if (!expanded || expanded.lost) return "large";
    if (expanded.at) return "of another";
    return step !== "sending" || isSameClaim(document.claim, claim) ? "ours" : "of another";
  };

  /** Sends again what has no outcome, as a possible repeat. */
  const restart = async ({ document }: FoundSend, { claim, signal }: Pick<GroupMessage, "claim" | "signal">) => {
    const { projectId, _id: notificationId } = document;
    await sends.moveToDeliveries(projectId, notificationId);
    // Another process may have ended the send since it was read, and died before it published the end.
    const late = await sends.find({ projectId, notificationId });
    if (late?.document.end) return publish(late);
    const batches = document.expanded?.batches ?? 0;
    const ids = Array.from({ length: batches }, (_, n) => rootBatchId(notificationId, n));
    const personal = isForOneUser(document);
    for (const id of ids) {
      const run = await deliveries.restart(projectId, id, claim, now());
      if (!run) continue;
      await pipeline.deliver(run, signal, await checkWaiting(projectId, run.devices, personal));
    }
    await publish({ document, events: [] });
    // So that events of rows settled while the bus was unavailable need not wait for the sweep.
    await outbox.flushRows(projectId, ids);
    await finisher.check(projectId, notificationId);
  };

  const continueApart = async (send: GroupedSend, claim: Claim): Promise<void> => {
    const found = await sends.find(send);
    const state = found ? stateOf(found, claim) : "large";
    if (!found || state === "large") return sendAsLarge(send);
    if (state === "ended") return publish(found);
    if (state === "of another") return;
    await release(send.projectId, send.notificationId, claim);
    // Another process may have ended the send since it was read, and died before it published the end.
    await publish((await sends.find(send)) ?? found);
  };

  return {
    /** Continues a send for its message. Repeats pushes whose outcomes were not written. Repeatable. */
    resume: async (
      send: GroupedSend,
      found: FoundSend,
      message: Pick<GroupMessage, "claim" | "signal">,
    ): Promise<void> => {
      const state = stateOf(found, message.claim);
      if (state === "ended") await publish(found);
      else if (state === "large") await sendAsLarge(send);
      else if (state === "ours") await restart(found, message);
    },

    /**
     * Continues the sends of a message with messages of their own, so that each fails alone. Repeatable. Resolves to those that could not
     * continue so.
     */
    continueApart: async (some: readonly GroupedSend[], claim: Claim): Promise<FailedSend[]> => {
      const done = await Promise.allSettled(
        some.map((send) => fromOrigin("deliver send", send.origin, () => continueApart(send, claim))),
      );
      return done.flatMap((each, at) =>
        each.status === "rejected" ? [{ send: some[at] as GroupedSend, error: each.reason }] : [],
      );
    },
  };
};

export type BegunSends = ReturnType<typeof createBegunSends>;
