import { type NotificationContent, type Recipient, servingProvider } from "@herald/contracts";
import { growingPause, inSpan, notFound, retryWhileUnavailable } from "@herald/kit";
import { receiptAsker } from "@herald/payload";
import type { Deps } from "../deps.ts";
import { rootGeneration } from "../domain/batch.ts";
import { isSpike } from "../domain/notification-counts.ts";
import { isTokenRefusal } from "../domain/outcome.ts";
import { refusalAdvice } from "../domain/refusal-advice.ts";
import { applyRuleResults } from "../domain/rule-results.ts";
import { allSkipped, noneSkipped, type Settlement, type Skips, settleRow } from "../domain/settle-row.ts";
import { nextTrialAt } from "../domain/trials.ts";
import type { BatchFacts, Run } from "../stores/delivery-document.ts";
import { canRebuildEvents } from "../stores/delivery-store.ts";
import type { ActivityChannels } from "./activity-channels.ts";
import type { ActivitySends } from "./activity-sends.ts";
import { createFollowUp, type FollowUpDeps } from "./follow-up.ts";
import { type CachedNotification, expiryOf } from "./notification-cache.ts";
import { type PushDeps, type Pushed, pushDevices } from "./push-devices.ts";
import type { RecipientValues } from "./recipient-values.ts";

export type PipelineDeps = PushDeps &
  FollowUpDeps &
  Pick<Deps, "isRestored" | "log" | "metrics" | "outbox" | "publish" | "random"> & {
    /** Starts rows that were just made due. */
    readonly sweepDue: () => Promise<void>;
    readonly activities: ActivitySends;
    readonly channels: ActivityChannels;
    readonly recipientValues: RecipientValues;
  };

/** For outcomes of pushes: losing them would repeat the pushes, so unexpected errors are retried, too. */
export const outcomeRetries = { otherAttempts: 10 } as const;

/** The settlement of a row that was sent, and the version of the settings used. */
type Sent = { readonly settlement: Settlement; readonly version?: string | undefined };

/** The steps of every ledger row, in small and large sends: send, settle, follow up. */
export const createPipeline = (deps: PipelineDeps) => {
  const { activities, cache, deliveries, credentials, finisher, outbox, pool, publish, isRestored, metrics, now, log } =
    deps;
  const followUp = createFollowUp(deps);

  /** Adds this row's answers to the notification's answers in this process. True when the spike guard rejects them. */
  const guard = (cached: CachedNotification, { outcomes }: Pushed): boolean => {
    const { tokenAnswers } = cached;
    for (const outcome of outcomes) {
      if (!outcome || !(outcome.kind === "accepted" || outcome.kind === "unregistered" || outcome.kind === "rejected"))
        continue;
      // Of Herald itself: no environment or credential changes it.
      if (outcome.kind === "rejected" && outcome.notSent) continue;
      tokenAnswers.total++;
      if (outcome.kind !== "accepted" && isTokenRefusal(outcome)) tokenAnswers.unregistered++;
    }
    if (tokenAnswers.spike || !isSpike(tokenAnswers)) return tokenAnswers.spike;
    tokenAnswers.spike = true;
    const { projectId, _id: notificationId } = cached.document;
    const { total: answered, unregistered } = tokenAnswers;
    metrics.spike();
    log.error(
      { projectId, notificationId, answered, unregistered },
      "too many tokens are said to be dead or wrong, so no device is retired: check the environment and the credential",
    );
    return true;
  };

  const pause = async (refused: NonNullable<Pushed["refused"]>, signal: AbortSignal): Promise<void> => {
    const { channel, providerReason, since } = refused;
    const { projectId, provider } = channel;
    const why = { reason: "credential-refused", providerReason };
    const store = () => credentials.pause(channel, why, now(), since);
    const first = await retryWhileUnavailable(store, growingPause(signal)).finally(channel.pauseStored);
    pool.forget(projectId, provider);
    if (!first) return;
    metrics.paused(provider);
    log.error(
      { projectId, provider, providerReason, detail: refusalAdvice(providerReason) },
      "the provider refuses the credential and is paused",
    );
    await outbox.flushCredential(projectId, provider);
  };

  /** Ends a pause after a trial, and makes due what waits, as new settings do. */
  const resumeProvider = async (channel: NonNullable<Pushed["resumed"]>, signal: AbortSignal) => {
    const { projectId, provider } = channel;
    if (!(await retryWhileUnavailable(() => credentials.resume(channel, now()), growingPause(signal)))) return;
    pool.forget(projectId, provider);
    log.info({ projectId, provider }, "the provider accepts the credential again, and is resumed");
    await retryWhileUnavailable(() => deliveries.resume(projectId, provider, now()), growingPause(signal));
    void deps.sweepDue();
    await outbox.flushCredential(projectId, provider);
  };

  /** Pushes to a row's devices except those that are skipped, and decides each device's result. Does not write to the ledger. */
  const send = async (run: Run, cached: CachedNotification, also: Skips, signal: AbortSignal): Promise<Sent> => {
    if (deps.rules.loading) await deps.rules.loading;
    const all = isRestored(run.notificationId)
      ? run.devices.map((device) => ({ ...device, repeat: true }))
      : run.devices;
    const { activity } = cached.document.content;
    // Before the state is read: a version that is written after that is broadcast to them, too.
    const channels =
      activity?.event === "start"
        ? await deps.channels.of(
            { projectId: run.projectId, id: activity.id },
            all.filter((device) => device.channels),
          )
        : undefined;
    const content = activity && (await activities.current(cached.document));
    // The rows of a small send have them.
    const { kind } = (cached.document.expansions && cached.document.content.recipients) ?? {};
    const withValues =
      kind && (await retryWhileUnavailable(() => deps.recipientValues(run, kind), growingPause(signal)));
    const replaced = content === undefined && activity !== undefined;
    const reason = replaced ? "replaced" : run.skip;
    const skipped = reason ? allSkipped(all, reason) : also;
    const { devices, skips } = run.ruleResults
      ? applyRuleResults(all, run.ruleResults, skipped)
      : { devices: all, skips: skipped };
    const provider = servingProvider(run);
    const begun = performance.now();
    const sent = await inSpan(
      `send ${provider}`,
      { kind: "client", attributes: { "herald.provider": provider, "herald.devices": devices.length } },
      () => pushDevices(deps, { cached, devices, served: run, skips, content, channels, withValues }, signal),
    );
    metrics.sent(provider, sent.outcomes, (performance.now() - begun) / 1000);
    if (sent.faults.length > 0)
      log.error({ err: sent.faults[0], faults: sent.faults.length, batchId: run._id }, "requests could not be made");
    if (sent.refused) await pause(sent.refused, signal);
    if (sent.resumed) await resumeProvider(sent.resumed, signal);
    const isPaused = sent.refused !== undefined || sent.stop?.kind === "paused";
    const settlement = settleRow({
      devices,
      outcomes: sent.outcomes,
      blocked: sent.blocked,
      stop: sent.stop,
      nextTrialAt: isPaused ? (sent.nextTrialAt ?? nextTrialAt(0, now())) : undefined,
      skips,
      startedAt: run.startedAt,
      now: now(),
      expiresAt: expiryOf(cached, run),
      cancelled: cached.cancelled,
      // A card whose end never came shows an old state for hours.
      untilExpiry: activity?.event === "end",
      keepDevices: guard(cached, sent),
      asked: cached.document.content.receipts ? receiptAsker(cached.document.content, run) : undefined,
      random: deps.random(),
    });
    return { settlement, version: sent.version };
  };

  /**
   * Writes a row's outcomes and publishes its events. Undefined when another process has taken the row over: then that process's outcomes
   * count. Throws while the bus is unavailable, if the run's message is redelivered and so publishes the events.
   */
  const settle = async (run: Run, settlement: Settlement, signal: AbortSignal): Promise<Settlement | undefined> => {
    const at = now();
    // The pushes are out: until the database is back, only this process has their outcomes.
    const events = await retryWhileUnavailable(
      () => deliveries.settle(run, settlement, at),
      growingPause(signal),
      outcomeRetries,
    );
    if (events === undefined) {
      log.warn({ batchId: run._id, projectId: run.projectId }, "another process has taken the batch over");
      return undefined;
    }
    if (canRebuildEvents(run, settlement)) await publish(events);
    // Published before the follow-up, because subscribers wait for them. Events that fail stay in the row for the sweep.
    else if (events.length > 0) await outbox.publishRow({ ...run, outbox: events });
    return settlement;
  };

  /**
   * `others`: this process is sending more batches of the notification. The handler that settles the last of them checks for the end,
   * so no check is needed now.
   */
  const next = async (
    run: Run,
    settled: Settlement | undefined,
    { others, version }: { others: boolean; version?: string | undefined },
  ): Promise<void> => {
    if (settled && (settled.waiting || run.generation !== rootGeneration)) await followUp(run, version);
    else if (!others) await finisher.check(run.projectId, run.notificationId);
  };

  return {
    send,
    followUp,

    /** Sends the state of an activity to a channel. It has neither a row nor counts: Apple says nothing of its devices. */
    broadcast: async (
      cached: CachedNotification,
      channel: Recipient,
      content: NotificationContent,
      signal: AbortSignal,
    ): Promise<Pushed> => {
      if (deps.rules.loading) await deps.rules.loading;
      const devices = [{ ...channel, attempts: 0, repeat: false }];
      const served = { platform: "ios", lane: "broadcast" } as const;
      const sent = await pushDevices(deps, { cached, devices, served, skips: noneSkipped, content }, signal);
      if (sent.refused) await pause(sent.refused, signal);
      if (sent.resumed) await resumeProvider(sent.resumed, signal);
      return sent;
    },

    /** For a batch whose message was redelivered after the batch was settled: publishes its events again and follows up. */
    resume: async (batch: BatchFacts): Promise<void> => {
      const events = await deliveries.rebuildEvents(batch.projectId, batch._id);
      await publish(events);
      await followUp(batch);
    },

    /** The steps after `send`. */
    complete: async (run: Run, { settlement, version }: Sent, signal: AbortSignal): Promise<void> =>
      next(run, await settle(run, settlement, signal), { others: false, version }),

    /** All steps for a started row. Devices in `skips` are skipped. */
    deliver: async (run: Run, signal: AbortSignal, skips: Skips = noneSkipped): Promise<void> => {
      const cached = await retryWhileUnavailable(
        () => cache.get(run.projectId, run.notificationId),
        growingPause(signal),
      );
      if (!cached) throw notFound("notification-not-found", "notificationId", `the batch is ${run._id}`);
      let settled: Settlement | undefined;
      let version: string | undefined;
      cached.running++;
      try {
        const sent = await send(run, cached, skips, signal);
        version = sent.version;
        settled = await settle(run, sent.settlement, signal);
      } finally {
        cached.running--;
      }
      await next(run, settled, { others: cached.running > 0, version });
    },

    /** Settles a row whose message was dead-lettered: nothing is pushed. */
    abandon: async (run: Run, signal: AbortSignal): Promise<void> => {
      const { devices, startedAt } = run;
      const settlement = settleRow({
        devices,
        outcomes: [],
        stop: { kind: "abandoned" },
        startedAt,
        now: startedAt,
        expiresAt: startedAt,
        cancelled: false,
        keepDevices: true,
        random: 0,
      });
      await next(run, await settle(run, settlement, signal), { others: false });
    },
  };
};

export type Pipeline = ReturnType<typeof createPipeline>;
