import { type Bus, fromOrigin, groupedPublish } from "@herald/bus";
import { type GroupedSend, SendV1 } from "@herald/contracts";
import type { Deps } from "../deps.ts";
import { rootBatchId } from "../domain/batch.ts";
import type { Claim } from "../stores/delivery-document.ts";
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

/** For which message a send is delivered. */
export type ForMessage = { readonly claim: Claim; readonly signal: AbortSignal };

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

  const find = async (send: GroupedSend): Promise<FoundSend | null> => {
    const [found] = await sends.findEach([send]);
    if (found?.status === "rejected") throw found.reason;
    return found?.value ?? null;
  };

  /** It became a large send, perhaps because its message was dead-lettered. */
  const isLarge = ({ document: { end, expanded } }: FoundSend) => !end && (!expanded || expanded.lost !== undefined);

  /** Sends again what has no outcome, as a possible repeat. */
  const restart = async (found: FoundSend, { claim, signal }: ForMessage): Promise<void> => {
    const { document } = found;
    const { projectId, _id: notificationId } = document;
    await sends.moveToDeliveries(projectId, notificationId);
    // Another process may have ended the send since it was read, and died before it published the end.
    const late = await find({ projectId, notificationId } as GroupedSend);
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

  const continueApart = async (send: GroupedSend): Promise<void> => {
    const found = await find(send);
    if (!found || isLarge(found)) return sendAsLarge(send);
    if (!found.document.end) await release(send.projectId, send.notificationId);
    await publish(found);
  };

  return {
    /** Continues a send for the message in `claim`. Repeats pushes whose outcomes were not written. Repeatable. */
    resume: async (send: GroupedSend, found: FoundSend, message: ForMessage): Promise<void> => {
      const { document } = found;
      if (document.end) return publish(found);
      if (isLarge(found)) return sendAsLarge(send);
      const holder = document.step === "sending" ? document.claim : undefined;
      const { claim } = message;
      if (holder && (holder.sequence !== claim.sequence || holder.at !== claim.at)) return; // another message's to end
      await restart(found, message);
    },

    /** Continues sends with messages of their own, so that each fails alone. Repeatable. Resolves to those that could not continue so. */
    continueApart: async (some: readonly GroupedSend[]): Promise<FailedSend[]> => {
      const done = await Promise.allSettled(
        some.map((send) => fromOrigin("deliver send", send.origin, () => continueApart(send))),
      );
      return done.flatMap((each, at) =>
        each.status === "rejected" ? [{ send: some[at] as GroupedSend, error: each.reason }] : [],
      );
    },

    find,
  };
};

export type BegunSends = ReturnType<typeof createBegunSends>;
