import { type Bus, fromOrigin, groupedPublish } from "@herald/bus";
import { type GroupedSend, SendV1 } from "@herald/contracts";
import type { Deps } from "../deps.ts";
import { rootBatchId } from "../domain/batch.ts";
import { type Claim, isSameClaim, type Run } from "../stores/delivery-document.ts";
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
  readonly pipeline: Pick<Pipeline, "abandon" | "deliver">;
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

  /** Ends a send that this message began: what has no outcome goes through `finish`. */
  const endRows = async ({ document }: FoundSend, claim: Claim, finish: (run: Run) => Promise<void>): Promise<void> => {
    const { projectId, _id: notificationId } = document;
    await sends.moveToDeliveries(projectId, notificationId);
    // Another process may have ended the send since it was read, and died before it published the end.
    const late = await sends.find({ projectId, notificationId });
    if (late?.document.end) return publish(late);
    const batches = document.expanded?.batches ?? 0;
    const ids = Array.from({ length: batches }, (_, n) => rootBatchId(notificationId, n));
    for (const id of ids) {
      const run = await deliveries.restart(projectId, id, claim, now());
      if (run) await finish(run);
    }
    await publish({ document, events: [] });
    // So that events of rows settled while the bus was unavailable need not wait for the sweep.
    await outbox.flushRows(projectId, ids);
    await finisher.check(projectId, notificationId);
  };

  /** Continues a send as its state asks; with `ours`, if this message began it. */
  const continueFound = async (
    send: GroupedSend,
    found: FoundSend | null,
    claim: Claim,
    ours: (found: FoundSend) => Promise<void>,
  ): Promise<void> => {
    const state = found ? stateOf(found, claim) : "large";
    if (!found || state === "large") return sendAsLarge(send);
    if (state === "ended") return publish(found);
    if (state === "ours") return ours(found);
  };

  /** {@link continueFound} for sends of a message, each under its own request. Resolves to those that failed. */
  const continueEach = async (
    some: readonly GroupedSend[],
    claim: Claim,
    ours: (found: FoundSend) => Promise<void>,
  ): Promise<FailedSend[]> => {
    const done = await Promise.allSettled(
      some.map((send) =>
        fromOrigin("deliver send", send.origin, async () => continueFound(send, await sends.find(send), claim, ours)),
      ),
    );
    return done.flatMap((each, at) =>
      each.status === "rejected" ? [{ send: some[at] as GroupedSend, error: each.reason }] : [],
    );
  };

  return {
    /** Continues a send for its message. Repeats pushes whose outcomes were not written, marked. Repeatable. */
    resume: (
      send: GroupedSend,
      found: FoundSend,
      { claim, signal }: Pick<GroupMessage, "claim" | "signal">,
    ): Promise<void> =>
      continueFound(send, found, claim, (ours) =>
        endRows(ours, claim, async (run) => {
          const skips = await checkWaiting(run.projectId, run.devices, isForOneUser(ours.document));
          await pipeline.deliver(run, signal, skips);
        }),
      ),

    /**
     * Continues the sends of a message with messages of their own, so that each fails alone. Repeatable. Resolves to those that could not
     * continue so.
     */
    continueApart: (some: readonly GroupedSend[], claim: Claim): Promise<FailedSend[]> =>
      continueEach(some, claim, async (found) => {
        const { projectId, _id: notificationId } = found.document;
        await release(projectId, notificationId, claim);
        // Another process may have ended the send since it was read, and died before it published the end.
        await publish((await sends.find({ projectId, notificationId })) ?? found);
      }),

    /**
     * Ends the sends of a dead-lettered message that it had begun: what has no outcome has failed. The others become large sends, with
     * messages of their own. Repeatable. Resolves to those that could not end so.
     */
    abandon: (
      some: readonly GroupedSend[],
      { claim, signal }: Pick<GroupMessage, "claim" | "signal">,
    ): Promise<FailedSend[]> =>
      continueEach(some, claim, (found) => endRows(found, claim, (run) => pipeline.abandon(run, signal))),
  };
};

export type BegunSends = ReturnType<typeof createBegunSends>;
