import type { DeviceId } from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import { rootGeneration } from "../domain/batch-ids.ts";
import { type Settlement, settleBatch } from "../domain/settle-batch.ts";
import type { BatchFacts, Run } from "../stores/delivery-document.ts";
import type { DeliveryStore } from "../stores/delivery-store.ts";
import type { Finisher } from "./finish.ts";
import { createFollowUp, type FollowUp, type FollowUpDeps } from "./follow-up.ts";
import { retryWhileUnavailable } from "./retry-while-unavailable.ts";
import { createSend, type Send, type SendDeps, type Sent } from "./send.ts";
import { createSettle, type SettleDeps } from "./settle.ts";

export type PipelineDeps = SendDeps &
  SettleDeps &
  FollowUpDeps & { readonly finisher: Finisher; readonly deliveries: Pick<DeliveryStore, "rebuildEvents"> };

/** Every row of the ledger takes these steps, in small sends and large ones: send, settle, follow up. */
export type Pipeline = {
  /** All steps for a started row. Devices in `moved` are skipped. */
  deliver(run: Run, signal: AbortSignal, moved?: ReadonlySet<DeviceId>): Promise<void>;
  /** Settles a row whose message was dead-lettered: nothing is pushed. */
  abandon(run: Run, signal: AbortSignal): Promise<void>;
  send: Send;
  /** What comes after {@link send}. */
  complete(run: Run, sent: Sent, signal: AbortSignal): Promise<void>;
  followUp: FollowUp;
  /** For a batch that was settled before its message was acked: publishes its events again and follows up. */
  resume(batch: BatchFacts): Promise<void>;
};

export const createPipeline = (deps: PipelineDeps): Pipeline => {
  const { finisher, cache } = deps;
  const send = createSend(deps);
  const settle = createSettle(deps);
  const followUp = createFollowUp(deps);

  /**
   * `others`: this process is sending more batches of the notification. Those are not final yet, and the handler that settles the last of them
   * looks for the end, so that looking now would be in vain.
   */
  const next = async (
    run: Run,
    settled: Settlement | undefined,
    { others, version }: { others: boolean; version?: string | undefined },
  ): Promise<void> => {
    if (settled && (settled.waiting || run.generation !== rootGeneration)) await followUp(run, { version });
    else if (!others) await finisher.check(run.projectId, run.notificationId, settled);
  };

  return {
    send,
    followUp,

    resume: async (batch) => {
      const events = await deps.deliveries.rebuildEvents(batch.projectId, batch._id);
      await Promise.all(events.map(deps.publish));
      await followUp(batch);
    },

    complete: async (run, { settlement, version }, signal) =>
      next(run, await settle(run, settlement, signal), { others: false, version }),

    deliver: async (run, signal, moved = new Set()) => {
      const cached = await retryWhileUnavailable(() => cache.get(run.projectId, run.notificationId), signal);
      if (!cached) throw new HeraldError("notification-not-found", `the batch ${run._id} belongs to no notification`);
      let settled: Settlement | undefined;
      let version: string | undefined;
      cached.running++;
      try {
        const sent = await send(run, cached, moved, signal);
        version = sent.version;
        settled = await settle(run, sent.settlement, signal);
      } finally {
        cached.running--;
      }
      await next(run, settled, { others: cached.running > 0, version });
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
      await next(run, await settle(run, settlement, signal), { others: false });
    },
  };
};
