import { defineHandler } from "@herald/bus";
import { DueV1, type Lane, type NotificationId, type Platform, type ProjectId, providerOf } from "@herald/contracts";
import type { FairGate } from "@herald/kit";
import type { NotificationWatch } from "../delivery/notification-watch.ts";
import type { Pipeline } from "../delivery/pipeline.ts";
import type { CheckWaiting } from "../delivery/prepare.ts";
import { heldUntil } from "../delivery/push-devices.ts";
import type { Schedule } from "../delivery/schedule.ts";
import { batchKey, scheduleSubject } from "../domain/batch-ids.ts";
import { placesOf } from "../domain/places.ts";
import { pauseCheckMs } from "../domain/settle-batch.ts";
import type { ExpandQueued } from "../jobs/expand-queued.ts";
import type { ProviderPool } from "../providers/provider-pool.ts";
import type { BatchFacts, Claim, DeliveryDocument } from "../stores/delivery-document.ts";
import type { DeliveryStore } from "../stores/delivery-store.ts";
import type { NotificationStore } from "../stores/notification-store.ts";
import { claimOf } from "./deliver-batch.ts";

type Options = {
  notifications: NotificationStore;
  deliveries: DeliveryStore;
  watch: NotificationWatch;
  pool: ProviderPool;
  pipeline: Pipeline;
  schedule: Schedule;
  expandQueued: ExpandQueued;
  checkWaiting: CheckWaiting;
  gateOf: (lane: Lane, platform: Platform) => FairGate;
  /** Batches in memory, of all lanes and platforms. */
  concurrency: number;
  now: () => Date;
};

/** The clock says that a stored batch, or a scheduled notification, is due. */
export const wakeDue = (options: Options) => {
  const { notifications, deliveries, pipeline, expandQueued, gateOf, now } = options;

  const wakeNotification = async (projectId: ProjectId, id: NotificationId) => {
    if (await notifications.begin(projectId, id, now())) await expandQueued(projectId);
  };

  const wakeBatch = async (projectId: ProjectId, id: string, claim: Claim, signal: AbortSignal) => {
    const row = await deliveries.peek(projectId, id);
    if (!row || row.state === "final") return;
    if (row.state === "settled") return pipeline.followUp(row);
    // Before the gate too: what can only go on waiting takes nobody's turn.
    if (await waitsOn(options, row)) return;
    const leave = await gateOf(row.lane, row.platform).enter(projectId, placesOf(row.tally.devices));
    try {
      if (await waitsOn(options, row)) return;
      // Before the row is claimed: while registry cannot be asked, it goes on waiting.
      const moved = await movedOf(options, row);
      const run = await deliveries.wake(projectId, id, claim, now());
      if (run) await pipeline.deliver(run, signal, moved);
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

/** The devices of a row that it is not for any more. None where nothing is sent, because its notification has ended. */
const movedOf = async ({ watch, deliveries, checkWaiting, now }: Options, row: BatchFacts) => {
  const { _id, projectId, notificationId } = row;
  const watched = await watch.get(projectId, notificationId);
  if (!watched || (await watch.stopped(watched)) || now() >= watched.document.expiresAt) return undefined;
  return checkWaiting(projectId, await deliveries.waiting(projectId, _id), watched.personal);
};

type Row = BatchFacts & Pick<DeliveryDocument, "state" | "paused" | "tally">;

/**
 * Leaves a row alone whose provider is paused, or whose devices' servers must all be left alone, until it is looked at again:
 * it stays one row, however long that takes. Not when its notification has ended.
 */
const waitsOn = async (options: Options, row: Row): Promise<boolean> => {
  const { deliveries, watch, schedule, now } = options;
  if (row.state !== "waiting") return false;
  const until = await heldAllUntil(options, row);
  if (until === undefined) return false;
  const { _id, projectId, notificationId, generation } = row;
  const watched = await watch.get(projectId, notificationId);
  if (!watched || (await watch.stopped(watched)) || now() >= watched.document.expiresAt) return false;
  const at = new Date(Math.min(until, watched.document.expiresAt.getTime()));
  await deliveries.postpone(projectId, _id, at);
  const key = batchKey(_id);
  await schedule({
    subject: scheduleSubject(key, generation),
    at,
    data: { kind: "batch", projectId, key, id: _id },
  });
  return true;
};

/** When it is looked at again, in milliseconds since 1970; undefined when some of its devices may be sent to. */
const heldAllUntil = async ({ deliveries, pool, now }: Options, row: Row): Promise<number | undefined> => {
  const lookup = await pool.lookup(row.projectId, providerOf[row.platform]);
  const at = now().getTime();
  if (lookup.kind === "paused") return row.paused ? at + pauseCheckMs : undefined;
  if (lookup.kind !== "ready" || !lookup.channel.routes.anyHeld()) return undefined;
  let first: number | undefined;
  for (const device of await deliveries.waiting(row.projectId, row._id)) {
    const until = heldUntil(lookup.channel, device, at);
    if (until === undefined) return undefined;
    first = Math.min(until, first ?? until);
  }
  return first;
};
