import { type DeviceId, type OutboxEvent, type Provider, providerOf } from "@herald/contracts";
import { HeraldError, inSpan, type Logger } from "@herald/kit";
import { batchKey, rootGeneration, scheduleSubject } from "../domain/batch-ids.ts";
import { type Settlement, settleBatch } from "../domain/settle-batch.ts";
import { isSpike } from "../domain/spike-guard.ts";
import type { CredentialStore } from "../stores/credential-store.ts";
import type { BatchFacts, Run } from "../stores/delivery-document.ts";
import type { DeliveryStore } from "../stores/delivery-store.ts";
import type { Finisher } from "./finisher.ts";
import { keepTrying } from "./keep-trying.ts";
import type { DispatchMetrics } from "./metrics.ts";
import type { Watched } from "./notification-watch.ts";
import type { Schedule } from "./schedule.ts";
import { type SendOptions, type Sent, sendBatch } from "./send-batch.ts";

export type CarryOutOptions = SendOptions & {
  readonly deliveries: DeliveryStore;
  readonly credentials: Pick<CredentialStore, "pause" | "find">;
  readonly finisher: Finisher;
  readonly schedule: Schedule;
  /** Publishes the events of a row that is settled. Never throws. */
  readonly announce: (
    told: Pick<BatchFacts, "_id" | "projectId"> & { outbox: readonly OutboxEvent[] },
  ) => Promise<void>;
  /** Publishes the outbox of a project's provider. Never throws. */
  readonly flushCredential: (projectId: string, provider: Provider) => Promise<void>;
  readonly metrics: DispatchMetrics;
  readonly random: () => number;
  readonly log: Logger;
};

export type CarryOut = {
  /** Sends a row that was started, but not to those who `moved`; writes what became of it, and does what follows from that. */
  run(run: Run, signal: AbortSignal, moved?: ReadonlySet<DeviceId>): Promise<void>;
  /** The same for a row whose message was given up: none of its devices is sent to. */
  abandon(run: Run, signal: AbortSignal): Promise<void>;
  /** Sends a row that was started, and decides for each of its devices. Nothing is written. */
  send(
    run: Run,
    watched: Watched,
    moved: ReadonlySet<DeviceId>,
    signal: AbortSignal,
  ): Promise<{ settlement: Settlement } & Followed>;
  /** What follows from a row that is settled: its child, and the end of the notification. Repeatable. */
  follow(batch: BatchFacts, sent?: Followed): Promise<void>;
};

/** What a row goes on with: the version of the settings that it was sent with is known to whoever sent it. */
type Followed = { readonly version?: string | undefined };

export const createCarryOut = (options: CarryOutOptions): CarryOut => {
  const { deliveries, credentials, finisher, schedule, watch, metrics, now, log } = options;

  /** Undefined when another process has taken the batch over: then its outcomes are the ones that count. */
  const settle = async (run: Run, settlement: Settlement, signal: AbortSignal): Promise<Settlement | undefined> => {
    const at = now();
    // What was sent is sent: while the database is away the outcomes are kept here, and nowhere else.
    const events = await keepTrying(() => deliveries.settle(run, settlement, at), signal);
    if (events === undefined) {
      log.warn({ batchId: run._id, projectId: run.projectId }, "another process has taken the batch over");
      return undefined;
    }
    // Published first, for those who wait for them; what fails here stays in the row for the sweep.
    if (events.length > 0) await options.announce({ ...run, outbox: events });
    return settlement;
  };

  const follow = async (batch: BatchFacts, { version }: Followed = {}): Promise<void> => {
    const child = await deliveries.storeChild(batch);
    if (child) await plan(child, version);
    else await finisher.check(batch.projectId, batch.notificationId);
  };

  const plan = async (
    child: NonNullable<Awaited<ReturnType<DeliveryStore["storeChild"]>>>,
    version: string | undefined,
  ): Promise<void> => {
    const { projectId, _id, generation, dueAt, paused } = child;
    await schedule({
      subject: scheduleSubject(batchKey(_id), generation),
      at: dueAt,
      data: { kind: "batch", projectId, key: batchKey(_id), id: _id },
    });
    if (!paused && version === undefined) return;
    // New settings that came between the attempt and this row have woken the others without it.
    const credential = await credentials.find(projectId, providerOf[child.platform]);
    if (credential?.paused || (!paused && credential?.version === version)) return;
    // Refused here a moment ago: the pause is on its way to the database, and woken it would only find that out again.
    if (credential && options.pool.refused(credential)) return;
    options.pool.forget(projectId, providerOf[child.platform]);
    await deliveries.resume(projectId, child.platform, now());
  };

  /** Adds this row's verdicts to what this process knows of the notification; true when they are not to be believed. */
  const guard = (watched: Watched, { outcomes }: Sent): boolean => {
    const { verdicts } = watched;
    for (const outcome of outcomes) {
      if (!outcome || !(outcome.kind === "accepted" || outcome.kind === "unregistered" || outcome.kind === "rejected"))
        continue;
      verdicts.judged++;
      if (outcome.kind === "unregistered") verdicts.unregistered++;
    }
    if (verdicts.spike || !isSpike(verdicts)) return verdicts.spike;
    verdicts.spike = true;
    const { projectId, _id: notificationId } = watched.document;
    const { judged, unregistered } = verdicts;
    metrics.spike();
    log.error(
      { projectId, notificationId, judged, unregistered },
      "too many devices are said to be unregistered, so none is retired: check the environment and the credential",
    );
    return true;
  };

  const pause = async (run: Run, refused: NonNullable<Sent["refused"]>, signal: AbortSignal): Promise<void> => {
    const { projectId } = run;
    const { channel, providerReason } = refused;
    const why = { reason: "credential-refused", providerReason };
    const first = await keepTrying(() => credentials.pause(channel, why, now()), signal);
    if (!first) return;
    metrics.paused(channel.provider);
    log.error(
      { projectId, provider: channel.provider, providerReason },
      "the provider refuses the credential and is paused",
    );
    await options.flushCredential(projectId, channel.provider);
  };

  const watchedOf = async (run: Run, signal: AbortSignal): Promise<Watched> => {
    const watched = await keepTrying(() => watch.get(run.projectId, run.notificationId), signal);
    if (watched) return watched;
    throw new HeraldError("notification-not-found", `the batch ${run._id} belongs to no notification`);
  };

  const send = async (
    run: Run,
    watched: Watched,
    moved: ReadonlySet<DeviceId>,
    signal: AbortSignal,
  ): Promise<{ settlement: Settlement } & Followed> => {
    const { devices, platform } = run;
    const provider = providerOf[platform];
    const begun = performance.now();
    const sent = await inSpan(
      `send ${provider}`,
      { kind: "client", attributes: { "herald.provider": provider, "herald.devices": devices.length } },
      () => sendBatch(options, { watched, devices, platform, moved }, signal),
    );
    metrics.sent(provider, sent.outcomes, (performance.now() - begun) / 1000);
    if (sent.faults.length > 0)
      log.error({ err: sent.faults[0], faults: sent.faults.length, batchId: run._id }, "requests could not be made");
    if (sent.refused) await pause(run, sent.refused, signal);
    const settlement = settleBatch({
      devices,
      outcomes: sent.outcomes,
      held: sent.held,
      stop: sent.stop,
      moved,
      startedAt: run.startedAt,
      now: now(),
      expiresAt: watched.document.expiresAt,
      cancelled: watched.cancelled,
      keepDevices: guard(watched, sent),
      random: options.random(),
    });
    return { settlement, version: sent.version };
  };

  /**
   * `others`: this process is sending more batches of the notification. Those are not final yet, and whoever settles the last
   * of them looks for the end, so that looking now would be in vain.
   */
  const goOn = async (
    run: Run,
    settled: Settlement | undefined,
    { others, version }: { others: boolean } & Followed,
  ): Promise<void> => {
    if (settled && (settled.waiting || run.generation !== rootGeneration)) await follow(run, { version });
    else if (!others) await finisher.check(run.projectId, run.notificationId, settled);
  };

  return {
    run: async (run, signal, moved = new Set()) => {
      const watched = await watchedOf(run, signal);
      let settled: Settlement | undefined;
      let version: string | undefined;
      watched.running++;
      try {
        const sent = await send(run, watched, moved, signal);
        version = sent.version;
        settled = await settle(run, sent.settlement, signal);
      } finally {
        watched.running--;
      }
      await goOn(run, settled, { others: watched.running > 0, version });
    },

    abandon: async (run, signal) => {
      const { devices, startedAt } = run;
      const settlement = settleBatch({
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
      await goOn(run, await settle(run, settlement, signal), { others: false });
    },

    send,
    follow,
  };
};
