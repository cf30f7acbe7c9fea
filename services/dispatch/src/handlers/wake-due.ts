import { defineHandler } from "@herald/bus";
import { DueV1, type Lane, type NotificationId, type Platform, type ProjectId, providerOf } from "@herald/contracts";
import { batchKey, scheduleSubject } from "../domain/batch-ids.ts";
import { pauseCheckMs } from "../domain/settle-batch.ts";
import type { CarryOut } from "../sending/carry-out.ts";
import type { Expand } from "../sending/expand.ts";
import type { FairGate } from "../sending/fair-gate.ts";
import type { NotificationWatch } from "../sending/notification-watch.ts";
import type { ProviderPool } from "../sending/provider-pool.ts";
import type { Schedule } from "../sending/schedule.ts";
import type { BatchFacts, Claim } from "../stores/delivery-document.ts";
import type { DeliveryStore } from "../stores/delivery-store.ts";
import type { NotificationStore } from "../stores/notification-store.ts";
import { claimOf } from "./deliver-batch.ts";

type Options = {
  notifications: NotificationStore;
  deliveries: DeliveryStore;
  watch: NotificationWatch;
  pool: ProviderPool;
  carryOut: CarryOut;
  schedule: Schedule;
  expand: Expand;
  gateOf: (lane: Lane, platform: Platform) => FairGate;
  /** Batches in memory, of all lanes and platforms. */
  concurrency: number;
  now: () => Date;
};

/** The clock says that a stored batch, or a scheduled notification, is due. */
export const wakeDue = (options: Options) => {
  const { notifications, deliveries, carryOut, expand, gateOf, now } = options;

  const wakeNotification = async (projectId: ProjectId, id: NotificationId) => {
    const document = await notifications.begin(projectId, id, now());
    if (document) await expand(document);
  };

  const wakeBatch = async (projectId: ProjectId, id: string, claim: Claim, signal: AbortSignal) => {
    const row = await deliveries.peek(projectId, id);
    if (!row || row.state === "final") return;
    if (row.state === "settled") return carryOut.follow(row);
    const leave = await gateOf(row.lane, row.platform).enter(projectId);
    try {
      if (row.paused && (await stillPaused(options, row))) return;
      const run = await deliveries.wake(projectId, id, claim, now());
      if (run) await carryOut.run(run, signal);
    } finally {
      leave();
    }
  };

  return defineHandler({
    durable: "dispatch-due", // renaming a durable replays its stream
    message: DueV1,
    concurrency: options.concurrency,
    handle: ({ data: { kind, projectId, id }, signal, ...message }) =>
      kind === "notification"
        ? wakeNotification(projectId, id as NotificationId)
        : wakeBatch(projectId, id, claimOf(message), signal),
  });
};

/** Leaves a row of a paused provider alone until it is looked at again, unless its notification has ended. */
const stillPaused = async ({ deliveries, watch, pool, schedule, now }: Options, row: BatchFacts): Promise<boolean> => {
  const { _id, projectId, notificationId, platform, generation } = row;
  const watched = await watch.get(projectId, notificationId);
  if (!watched || (await watch.stopped(watched)) || now() >= watched.document.expiresAt) return false;
  const lookup = await pool.lookup(projectId, providerOf[platform]);
  if (lookup.kind !== "paused") return false;
  const at = new Date(Math.min(now().getTime() + pauseCheckMs, watched.document.expiresAt.getTime()));
  await deliveries.postpone(projectId, _id, at);
  const key = batchKey(_id);
  await schedule({
    subject: scheduleSubject(key, generation),
    at,
    data: { kind: "batch", projectId, key, id: _id },
  });
  return true;
};
