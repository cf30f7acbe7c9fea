import { defineHandler } from "@herald/bus";
import {
  DueV1,
  deliveryQueue,
  type Lane,
  type NotificationId,
  type Platform,
  type ProjectId,
  servingProvider,
} from "@herald/contracts";
import type { FairGate } from "@herald/kit";
import type { DueMessages } from "../delivery/due-messages.ts";
import type { NotificationCache } from "../delivery/notification-cache.ts";
import type { Pipeline } from "../delivery/pipeline.ts";
import type { CheckWaiting } from "../delivery/prepare.ts";
import { blockedUntil } from "../delivery/push-devices.ts";
import { unitsOf } from "../domain/gate-units.ts";
import { pauseCheckMs } from "../domain/settle-batch.ts";
import type { ExpandQueued } from "../jobs/expand-queued.ts";
import type { ProviderPool } from "../providers/provider-pool.ts";
import type { BatchFacts, Claim, DeliveryDocument } from "../stores/delivery-document.ts";
import type { DeliveryStore } from "../stores/delivery-store.ts";
import type { NotificationStore } from "../stores/notification-store.ts";
import { claimOf } from "./deliver-batch.ts";

type Deps = {
  notifications: NotificationStore;
  deliveries: DeliveryStore;
  cache: NotificationCache;
  pool: ProviderPool;
  pipeline: Pipeline;
  dueMessages: Pick<DueMessages, "scheduleBatch">;
  expandQueued: ExpandQueued;
  checkWaiting: CheckWaiting;
  gateOf: (lane: Lane, queue: Platform) => FairGate;
  /** Batches in memory, of all lanes and platforms. */
  concurrency: number;
  now: () => Date;
};

/** The clock says that a stored batch, or a scheduled notification, is due. */
export const deliverDue = (deps: Deps) => {
  const { notifications, deliveries, pipeline, expandQueued, gateOf, now } = deps;

  const startScheduled = async (projectId: ProjectId, id: NotificationId) => {
    if (await notifications.begin(projectId, id, now())) await expandQueued(projectId);
  };

  const deliverWaiting = async (projectId: ProjectId, id: string, claim: Claim, signal: AbortSignal) => {
    const row = await deliveries.read(projectId, id);
    if (!row || row.state === "final") return;
    if (row.state === "settled") return pipeline.followUp(row);
    // Before the gate, too: work that can only go on waiting takes no turn.
    if (await postponeBlocked(deps, row)) return;
    const leave = await gateOf(row.lane, deliveryQueue(row)).enter(projectId, unitsOf(row.tally.devices));
    try {
      if (await postponeBlocked(deps, row)) return;
      // Before the row is claimed: while registry cannot be asked, it goes on waiting.
      const moved = await movedOf(deps, row);
      const run = await deliveries.claimDue(projectId, id, claim, now());
      if (run) await pipeline.deliver(run, signal, moved);
    } finally {
      leave();
    }
  };

  return defineHandler({
    durable: "dispatch-due", // renaming a durable replays its stream
    message: DueV1,
    concurrency: deps.concurrency,
    handle: ({ data: { kind, projectId, id }, signal, ...message }) =>
      kind === "notification"
        ? startScheduled(projectId, id as NotificationId)
        : deliverWaiting(projectId, id, claimOf(message), signal),
  });
};

/** The devices of a row that it is not for any more. None where nothing is sent, because its notification has ended. */
const movedOf = async ({ cache, deliveries, checkWaiting, now }: Deps, row: BatchFacts) => {
  const { _id, projectId, notificationId } = row;
  const cached = await cache.get(projectId, notificationId);
  if (!cached || (await cache.stopped(cached)) || now() >= cached.document.expiresAt) return undefined;
  return checkWaiting(projectId, await deliveries.waiting(projectId, _id), cached.personal);
};

type Row = BatchFacts & Pick<DeliveryDocument, "state" | "paused" | "tally">;

/**
 * Leaves a row alone whose provider is paused, or whose devices' servers must all be left alone, until it is looked at again:
 * it stays one row, however long that takes. Not when its notification has ended.
 */
const postponeBlocked = async (deps: Deps, row: Row): Promise<boolean> => {
  const { deliveries, cache, dueMessages, now } = deps;
  if (row.state !== "waiting") return false;
  const until = await allBlockedUntil(deps, row);
  if (until === undefined) return false;
  const { _id, projectId, notificationId } = row;
  const cached = await cache.get(projectId, notificationId);
  if (!cached || (await cache.stopped(cached)) || now() >= cached.document.expiresAt) return false;
  const at = new Date(Math.min(until, cached.document.expiresAt.getTime()));
  await deliveries.postpone(projectId, _id, at);
  await dueMessages.scheduleBatch(row, at);
  return true;
};

/** When it is looked at again, in milliseconds since 1970; undefined when some of its devices may be sent to. */
const allBlockedUntil = async ({ deliveries, pool, now }: Deps, row: Row): Promise<number | undefined> => {
  const lookup = await pool.lookup(row.projectId, servingProvider(row));
  const at = now().getTime();
  if (lookup.kind === "paused") return row.paused ? at + pauseCheckMs : undefined;
  if (lookup.kind !== "ready" || !lookup.channel.routes.anyBlocked()) return undefined;
  let first: number | undefined;
  for (const device of await deliveries.waiting(row.projectId, row._id)) {
    const until = blockedUntil(lookup.channel, device, row.platform, at);
    if (until === undefined) return undefined;
    first = Math.min(until, first ?? until);
  }
  return first;
};
