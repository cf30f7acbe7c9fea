import { setImmediate } from "node:timers/promises";
import { currentOrigin, fromOrigin, isRecorded, type Origin, type PublishedEvent } from "@herald/bus";
import type { GroupedSend } from "@herald/contracts";
import { createGroupCommit, growingPause, hasCode, isUnavailable, retryWhileUnavailable } from "@herald/kit";
import type { Deps } from "../deps.ts";
import { rootBatchId } from "../domain/batch.ts";
import { noneSkipped } from "../domain/settle-row.ts";
import { eventsOfSend } from "../stores/events.ts";
import type { EndedSend, EvaluatedBatch, ResolvedSend, StoredSend } from "../stores/small-send-store.ts";
import type { BegunSends, createSendAsLarge, FailedSend, GroupMessage } from "./begun-sends.ts";
import type { NotificationCache } from "./notification-cache.ts";
import { outcomeRetries, type Pipeline } from "./pipeline.ts";
import type { ResolveSmallSends, SendAudience } from "./prepare.ts";
import { chunkSize } from "./push-devices.ts";
import type { RuleEvaluator } from "./rule-evaluator.ts";

type Sent = Awaited<ReturnType<Pipeline["send"]>>;

/** A send whose pushes are out. Its outcomes are only in this process. */
type Pushed = Pick<StoredSend, "document"> & {
  /** Its request and trace. */
  readonly origin: Origin;
  readonly settled: readonly (Sent & { readonly run: StoredSend["runs"][number] })[];
  readonly signal: AbortSignal;
};

type DeliverGroupDeps = Pick<Deps, "notifications" | "now" | "outbox" | "publish" | "rules" | "sends"> & {
  readonly begun: BegunSends;
  readonly cache: NotificationCache;
  readonly evaluator: RuleEvaluator;
  readonly pipeline: Pipeline;
  readonly resolve: ResolveSmallSends;
  readonly sendAsLarge: ReturnType<typeof createSendAsLarge>;
};

/**
 * Delivers small sends of one project and one message: resolve, evaluate the project's rules, store, push, settle, publish. Each step takes
 * what is left of the group, and has a result for each send. A send leaves the group when it had begun before, is large, must wait or was
 * taken over; then it goes on under its own request and trace. Does not reject: resolves to the sends that failed, when everything that it
 * began is at rest. The next call for the message finds what this one did. Calls `leave` as sends end.
 */
export const createDeliverGroup = (deps: DeliverGroupDeps) => {
  const { begun, cache, evaluator, notifications, outbox, pipeline, resolve, rules, sendAsLarge, sends } = deps;
  const now = coarseClock(deps.now);

  const resolveAlone = async (send: GroupedSend): Promise<SendAudience | null> => {
    try {
      return await resolve.alone(send);
    } catch (error) {
      if (hasCode(error, "process-crashed")) {
        // The dead-letter handler would make it a large send, whose expansion would end registry's processes again.
        await notifications.insertAbandoned(send, deps.now());
        await notifications.expansionLost(send.projectId, send.notificationId, deps.now());
      }
      throw error;
    }
  };

  /** Stores the results of the rules with the send: a redelivery reads them. */
  const evaluate = async ({ batches, ...one }: ResolvedSend): Promise<ResolvedSend> => {
    const { notificationId: _id, projectId, content, expiresAt } = one.send;
    const sent = { _id, projectId, content, expiresAt: new Date(expiresAt) };
    const evaluated = batches.map(async (batch) => {
      return { ...batch, ruleResults: await evaluator.evaluate(sent, batch.devices) };
    });
    return { ...one, batches: await Promise.all(evaluated) };
  };

  const isAtOnce = ({ settled }: Pushed) => settled.every(({ settlement }) => settlement.waiting === undefined);

  /** Some devices wait, or the send was cancelled or taken over: it continues as a large send. */
  const continueAsLarge = async ({ document, settled, signal }: Pushed): Promise<void> => {
    const { projectId, _id } = document;
    const move = () => sends.moveToDeliveries(projectId, _id);
    await retryWhileUnavailable(move, growingPause(signal), outcomeRetries);
    for (const { run, ...outcome } of settled) await pipeline.complete(run, outcome, signal);
    await deps.publish(eventsOfSend(document));
  };

  /** The events of a send that has ended, except those in its outbox. */
  const eventsOfEnd = ({ document, origin }: Pushed, end: EndedSend | undefined): PublishedEvent[] => {
    const own = end?.events.filter((event) => !end.stored.includes(event));
    return eventsOfSend({ ...document, ...end?.state }, own).map((event) => ({ ...event, origin }));
  };

  const publishStored = ({ document }: Pushed, { stored }: EndedSend) =>
    outbox.publishEnd({ ...document, outbox: [...stored] });

  /** An event that cannot be published fails only its send. */
  const publishedOf = (events: readonly PublishedEvent[], withOthers: Promise<void>): Promise<void> =>
    withOthers.catch((error: unknown) => (isUnavailable(error) ? Promise.reject(error) : deps.publish(events)));

  /** Until the database is back, only this process has the outcomes of a send. */
  const endAgain = async (one: Pushed, at: Date): Promise<void> => {
    const write = async () => {
      const [written] = await sends.endEach([one], at);
      if (written?.status === "rejected") throw written.reason;
      return written?.value;
    };
    const end = await retryWhileUnavailable(write, growingPause(one.signal), outcomeRetries);
    if (!end) return continueAsLarge(one);
    if (end.stored.length > 0) await publishStored(one, end);
    await deps.publish(eventsOfEnd(one, end));
  };

  /** Writes the ends of all sends whose pushes ended in a turn of the event loop, in one command, and publishes their events together. */
  const settle = createGroupCommit<Pushed, unknown>(
    async (all) => {
      const at = now();
      const ending = all.filter((one) => !one.document.end && isAtOnce(one));
      const written = await sends.endEach(ending, at);
      let next = 0;
      const parts = all.map((one): { readonly events?: PublishedEvent[]; readonly apart?: () => Promise<void> } => {
        if (one.document.end) return { events: eventsOfEnd(one, undefined) };
        const result = one === ending[next] ? written[next++] : undefined;
        if (result?.status === "rejected") return { apart: () => endAgain(one, at) };
        const end = result?.value;
        if (!end) return { apart: () => continueAsLarge(one) };
        const events = eventsOfEnd(one, end);
        return end.stored.length === 0 ? { events } : { events, apart: () => publishStored(one, end) };
      });
      const published = deps.publish(parts.flatMap(({ events = [] }) => events));
      return all.map((one, index) => {
        const { events, apart } = parts[index] ?? {};
        const own = events && publishedOf(events, published);
        return apart ? Promise.all([fromOrigin("deliver send", one.origin, apart), own]).then(() => {}) : own;
      });
    },
    { max: 256, concurrent: Number.POSITIVE_INFINITY },
  );

  /** `readAt`: when nothing had stopped the send yet. */
  const push = async (
    { document, runs }: StoredSend,
    { readAt, signal, origin }: { readonly readAt: Date; readonly signal: AbortSignal; readonly origin: Origin },
  ): Promise<unknown> => {
    if (document.end) return settle({ document, settled: [], signal, origin });
    const cached = cache.pin(document, readAt);
    try {
      const settled = await Promise.all(
        runs.map(async (run) => ({ run, ...(await pipeline.send(run, cached, noneSkipped, signal)) })),
      );
      return await settle({ document, settled, signal, origin });
    } finally {
      cache.unpin(document._id);
    }
  };

  return async (
    group: readonly GroupedSend[],
    message: GroupMessage,
    leave: (count: number) => void,
  ): Promise<FailedSend[]> => {
    const { claim, signal } = message;
    const failed: FailedSend[] = [];
    const open = new Set(group);
    const running: Promise<void>[] = [];

    /** Goes on with a send beside the others, to its end. */
    const begin = (send: GroupedSend, work: () => Promise<unknown>): void => {
      open.delete(send);
      const ended = work().catch((error: unknown) => void failed.push({ send, error }));
      running.push(ended.then(() => leave(1)));
    };
    const fail = (send: GroupedSend, error: unknown) => begin(send, () => Promise.reject(error));
    /** Goes on with a send that leaves the group. */
    const beginApart = (send: GroupedSend, work: () => Promise<unknown>): void =>
      begin(send, () => fromOrigin("deliver send", send.origin, work));

    /** The group's next step, with the sends that have a value. The others have failed, or leave the group. */
    const continueWith = <Value, Next>(
      some: readonly GroupedSend[],
      results: readonly PromiseSettledResult<Value>[],
      next: (send: GroupedSend, value: Value) => Next | undefined,
    ): Next[] =>
      some.flatMap((send, index) => {
        const result = results[index];
        if (result?.status === "fulfilled") return next(send, result.value) ?? [];
        fail(send, result?.reason);
        return [];
      });

    /** Those that nothing has begun. */
    const notBegun = async (): Promise<readonly GroupedSend[]> => {
      if (!message.again) return group;
      // Before its audience is read: a send that has begun keeps its devices, also if it would be a large one by now.
      return continueWith(group, await sends.findEach(group), (send, found) => {
        if (found) beginApart(send, () => begun.resume(send, found, message));
        return found ? undefined : send;
      });
    };

    const toResolved = (send: GroupedSend, audience: SendAudience | null): ResolvedSend | undefined => {
      if (audience !== null) return { ...audience, send, batches: batchesOfSend(send, audience) };
      beginApart(send, () => sendAsLarge(send));
      return undefined;
    };

    const resumeOther = async (send: GroupedSend): Promise<void> => {
      const found = await sends.find(send);
      if (found) await begun.resume(send, found, message); // otherwise its project is deleted
    };

    const storeAndPush = async (resolved: readonly ResolvedSend[]): Promise<void> => {
      const readAt = deps.now();
      const inserted = await sends.insertEach(resolved, claim, readAt);
      const stored = continueWith(resolved.map(sendOf), inserted, (send, value) => {
        if (value === null) beginApart(send, () => resumeOther(send));
        return value ? { send, value } : undefined;
      });
      let devices = 0;
      for (const { send, value } of stored) {
        const inside = (origin: Origin) => push(value, { readAt, signal, origin });
        if (isRecorded(send.origin)) beginApart(send, () => inside(currentOrigin()));
        else begin(send, () => inside(send.origin ?? {}));
        devices += value.document.expanded?.devices ?? 0;
        // Each send looks before its pushes whether it was stopped: at most so many pushes of others are made in between.
        if (devices < chunkSize) continue;
        devices = 0;
        await setImmediate();
      }
    };

    const evaluateAndStore = async (resolved: readonly ResolvedSend[]): Promise<void> => {
      const [first] = resolved;
      if (!first) return;
      if (!rules.byProject.has(first.send.projectId)) return storeAndPush(resolved);
      const evaluated = await Promise.allSettled(resolved.map(evaluate));
      await storeAndPush(continueWith(resolved.map(sendOf), evaluated, (_, value) => value));
    };

    const deliverAlone = async (some: readonly GroupedSend[]): Promise<PromiseSettledResult<unknown>[]> => {
      const resolved = await Promise.allSettled(
        some.map((send) => fromOrigin("deliver send", send.origin, () => resolveAlone(send))),
      );
      await evaluateAndStore(continueWith(some, resolved, toResolved));
      return resolved;
    };

    const deliver = async (): Promise<void> => {
      const fresh = await notBegun();
      const [first] = fresh;
      if (!first) return;
      const refused: GroupedSend[] = [];
      const suspects: GroupedSend[] = [];
      const answers = await resolve.each(first.projectId, fresh);
      const resolved = continueWith(fresh, answers, (send, audience) => {
        if (typeof audience !== "string") return toResolved(send, audience);
        (audience === "refused" ? refused : suspects).push(send);
        return undefined;
      });
      await evaluateAndStore(resolved);
      await deliverAlone(refused);
      // One after another: registry may die over any of them. While it gives no answer, the others would wait as long for one.
      for (const send of suspects) {
        const [result] = await deliverAlone([send]);
        if (result?.status === "rejected" && isUnavailable(result.reason)) throw result.reason;
      }
    };

    try {
      await deliver();
    } catch (error) {
      // What has not begun.
      for (const send of open) fail(send, error);
    }
    await Promise.all(running);
    return failed;
  };
};

export type DeliverGroup = ReturnType<typeof createDeliverGroup>;

const sendOf = ({ send }: ResolvedSend): GroupedSend => send;

/** The batches of a small send: one for each platform and provider. */
const batchesOfSend = (
  { projectId, notificationId }: Pick<GroupedSend, "projectId" | "notificationId">,
  { batches }: SendAudience,
): EvaluatedBatch[] =>
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
