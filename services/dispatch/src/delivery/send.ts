import { type DeviceId, servingProvider } from "@herald/contracts";
import { inSpan, type Logger } from "@herald/kit";
import { type Settlement, settleBatch } from "../domain/settle-batch.ts";
import { isSpike } from "../domain/spike-guard.ts";
import type { DispatchMetrics } from "../metrics.ts";
import type { CredentialStore } from "../stores/credential-store.ts";
import type { Run } from "../stores/delivery-document.ts";
import type { CachedNotification } from "./notification-cache.ts";
import { type PushDeps, type Pushed, pushDevices } from "./push-devices.ts";
import { retryWhileUnavailable } from "./retry-while-unavailable.ts";

export type SendDeps = PushDeps & {
  readonly credentials: Pick<CredentialStore, "pause">;
  /** Publishes the outbox of a project's provider. Never throws. */
  readonly flushCredential: (projectId: string, provider: Pushed["provider"]) => Promise<void>;
  readonly metrics: DispatchMetrics;
  readonly random: () => number;
  readonly log: Logger;
};

/** The settlement of a row that was sent, and the version of the settings that it was sent with. */
export type Sent = { readonly settlement: Settlement; readonly version?: string | undefined };

/** Pushes to a row's devices except those in `moved`, and decides the result of each. Writes nothing. */
export type Send = (
  run: Run,
  cached: CachedNotification,
  moved: ReadonlySet<DeviceId>,
  signal: AbortSignal,
) => Promise<Sent>;

export const createSend = (deps: SendDeps): Send => {
  const { credentials, metrics, now, log } = deps;

  /** Adds this row's verdicts to what this process knows of the notification; true when they are not to be believed. */
  const guard = (cached: CachedNotification, { outcomes }: Pushed): boolean => {
    const { verdicts } = cached;
    for (const outcome of outcomes) {
      if (!outcome || !(outcome.kind === "accepted" || outcome.kind === "unregistered" || outcome.kind === "rejected"))
        continue;
      verdicts.judged++;
      if (outcome.kind === "unregistered") verdicts.unregistered++;
    }
    if (verdicts.spike || !isSpike(verdicts)) return verdicts.spike;
    verdicts.spike = true;
    const { projectId, _id: notificationId } = cached.document;
    const { judged, unregistered } = verdicts;
    metrics.spike();
    log.error(
      { projectId, notificationId, judged, unregistered },
      "too many devices are said to be unregistered, so none is retired: check the environment and the credential",
    );
    return true;
  };

  const pause = async (run: Run, refused: NonNullable<Pushed["refused"]>, signal: AbortSignal): Promise<void> => {
    const { projectId } = run;
    const { channel, providerReason } = refused;
    const why = { reason: "credential-refused", providerReason };
    const first = await retryWhileUnavailable(() => credentials.pause(channel, why, now()), signal);
    if (!first) return;
    metrics.paused(channel.provider);
    log.error(
      { projectId, provider: channel.provider, providerReason },
      "the provider refuses the credential and is paused",
    );
    await deps.flushCredential(projectId, channel.provider);
  };

  return async (run, cached, moved, signal) => {
    const { devices } = run;
    const provider = servingProvider(run);
    const begun = performance.now();
    const sent = await inSpan(
      `send ${provider}`,
      { kind: "client", attributes: { "herald.provider": provider, "herald.devices": devices.length } },
      () => pushDevices(deps, { cached, devices, served: run, moved }, signal),
    );
    metrics.sent(provider, sent.outcomes, (performance.now() - begun) / 1000);
    if (sent.faults.length > 0)
      log.error({ err: sent.faults[0], faults: sent.faults.length, batchId: run._id }, "requests could not be made");
    if (sent.refused) await pause(run, sent.refused, signal);
    const settlement = settleBatch({
      devices,
      outcomes: sent.outcomes,
      blocked: sent.blocked,
      stop: sent.stop,
      moved,
      startedAt: run.startedAt,
      now: now(),
      expiresAt: cached.document.expiresAt,
      cancelled: cached.cancelled,
      keepDevices: guard(cached, sent),
      random: deps.random(),
    });
    return { settlement, version: sent.version };
  };
};
