import { defineHandler, publish } from "@herald/bus";
import {
  type ActivityId,
  DeliverBatchV1,
  DueV1,
  deliveryQueue,
  JoinActivityV1,
  type Lane,
  type NotificationId,
  type Platform,
  type ProjectId,
  servingProvider,
} from "@herald/contracts";
import { type FairGate, notFound } from "@herald/kit";
import type { DeliveryDeps } from "../delivery/create-delivery.ts";
import { expiryOf } from "../delivery/notification-cache.ts";
import { blockedUntil } from "../delivery/push-devices.ts";
import { unitsOf } from "../domain/batch.ts";
import { isDelayOver, ownWait, type Sendable } from "../domain/settle-row.ts";
import {
  type BatchFacts,
  type Claim,
  claimOf,
  type DeliveryDocument,
  type Run,
  rootOf,
} from "../stores/delivery-document.ts";

/** One durable for each lane and platform, so that neither a broadcast nor a slow provider delays another lane or platform. */
export const deliverDurables = [
  "dispatch-direct-ios",
  "dispatch-direct-android",
  "dispatch-direct-web",
  "dispatch-broadcast-ios",
  "dispatch-broadcast-android",
  "dispatch-broadcast-web",
] as const;

/** If a batch for single users waited longer in its queue, dispatch asks registry again who uses its devices. */
const ownersMaxAgeMs = 2_000;

type BatchDeps = Pick<DeliveryDeps, "cache" | "checkWaiting" | "deliveries" | "evaluator" | "now" | "pipeline">;

/** Delivers a batch of devices: ledger row, pushes, outcomes, ack, in this order. */
export const deliverBatch = ({
  durable,
  concurrency,
  gate,
  ...deps
}: BatchDeps & {
  durable: (typeof deliverDurables)[number];
  /** Batches in memory. The gate limits how many of them are sent at a time, in total and by project. */
  concurrency: number;
  gate: FairGate;
}) => {
  const { cache, deliveries, pipeline, checkWaiting, evaluator, now } = deps;
  return defineHandler({
    durable, // renaming a durable replays its stream
    message: DeliverBatchV1,
    concurrency,
    async handle({ data, signal, ...message }) {
      const { batchId, projectId, notificationId } = data;
      const leave = await gate.enter(projectId, unitsOf(data.devices.length));
      try {
        const cached = await cache.get(projectId, notificationId);
        // Of a deleted project no row may be stored: nothing would find it.
        if (!cached || (await cache.isGone(cached)))
          throw notFound("notification-not-found", "notificationId", `the batch is ${batchId}`);
        // Before the row is stored: while registry is unavailable, nothing has begun.
        const waited = cached.personal && now().getTime() - message.publishedAt.getTime() > ownersMaxAgeMs;
        const skips = waited ? await checkWaiting(projectId, data.devices, true) : undefined;
        const root = rootOf(data);
        const document = { ...cached.document, expiresAt: expiryOf(cached, root) };
        // A redelivery has the results of before, and must not take a slot of a later window.
        const isEvaluated =
          message.deliveryCount > 1 &&
          evaluator.applies(document) &&
          (await deliveries.read(projectId, batchId)) !== null;
        const ruleResults =
          isEvaluated || root.skip ? undefined : await evaluator.evaluate(document, data.devices, skips);
        const run = await deliveries.start(data, claimOf(message), now(), { tags: document.tags, ruleResults });
        if (run) await pipeline.deliver(run, signal, skips);
        // The row was settled by an earlier delivery, which may have crashed before it followed up.
        else await pipeline.resume(root);
      } finally {
        leave();
      }
    },
  });
};

type DueDeps = BatchDeps &
  Pick<DeliveryDeps, "bus" | "dueMessages" | "expandQueued" | "expansionSteps" | "pool"> & {
    gateOf: (lane: Lane, queue: Platform) => FairGate;
    /** Batches in memory, of all lanes and platforms. */
    concurrency: number;
  };

/** Delivers a waiting batch, or starts a scheduled notification, when it is due. */
export const deliverDue = (deps: DueDeps) => {
  const { deliveries, pipeline, expandQueued, expansionSteps, gateOf, now } = deps;

  const startScheduled = async (projectId: ProjectId, id: NotificationId) => {
    const begun = await expansionSteps.begin(projectId, id);
    if (begun) await expandQueued(projectId, begun.document);
  };

  const deliverWaiting = async (projectId: ProjectId, id: string, claim: Claim, signal: AbortSignal) => {
    const row = await deliveries.read(projectId, id);
    if (!row || row.state === "final") return;
    if (row.state === "settled") return pipeline.followUp(row);
    // Checked before the gate, too: a batch that must wait longer takes no place there.
    if (await postponeBlocked(deps, row)) return;
    const leave = await gateOf(row.lane, deliveryQueue(row)).enter(projectId, unitsOf(row.tally.devices));
    try {
      if (await postponeBlocked(deps, row)) return;
      // Before the row is claimed: while registry is unavailable, the row keeps waiting.
      const found = await movedOf(deps, row);
      const run = await deliveries.claimDue(projectId, id, claim, now());
      if (run) await pipeline.deliver(await evaluateAgain(deps, run, found), signal, found?.moved);
    } finally {
      deps.pool.trials.leave(projectId, servingProvider(row), id);
      leave();
    }
  };

  return defineHandler({
    durable: "dispatch-due", // renaming a durable replays its stream
    message: DueV1,
    concurrency: deps.concurrency,
    handle: async ({ data: { kind, projectId, id }, signal, ...message }) => {
      if (kind === "notification") await startScheduled(projectId, id as NotificationId);
      else if (kind === "batch") await deliverWaiting(projectId, id, claimOf(message), signal);
      // It waits for Apple there, and takes no place from rows that are due.
      else
        await publish(
          deps.bus,
          JoinActivityV1,
          { projectId, activityId: id as ActivityId },
          { id: `${projectId}/${id}/due/${message.sequence}` },
        );
    },
  });
};

/** The notification of a row, unless it has ended. */
const activeOf = async ({ cache, now }: DueDeps, row: BatchFacts) => {
  const { projectId, notificationId } = row;
  const cached = await cache.get(projectId, notificationId);
  return cached && !(await cache.stopped(cached)) && now() < expiryOf(cached, row) ? cached : undefined;
};

/**
 * The devices of a row that must not get its push any more; where quiet hours have ended, also those that do not want its kind now.
 * Undefined when nothing is sent, because the notification has ended.
 */
const movedOf = async (deps: DueDeps, row: BatchFacts) => {
  const cached = await activeOf(deps, row);
  if (!cached) return undefined;
  const { projectId } = row;
  const devices = await deps.deliveries.waiting(projectId, row._id);
  const { kind } = devices.some((device) => isDelayOver(device, deps.now()))
    ? (deps.evaluator.askedOf(projectId, cached.document.content).rules ?? {})
    : {};
  const skips = await deps.checkWaiting(projectId, devices, cached.personal, kind);
  return { cached, skips, moved: kind ? new Map([...skips].filter(([, reason]) => reason === "moved")) : skips };
};

/** Evaluates kind and cap for devices whose quiet hours have ended, and stores the results before the push: a redelivery reads them. */
const evaluateAgain = async (
  { evaluator, deliveries, now }: DueDeps,
  run: Run,
  found: Awaited<ReturnType<typeof movedOf>>,
): Promise<Run> => {
  if (!found || run.ruleResults || !run.devices.some((device) => isDelayOver(device, now()))) return run;
  const ruleResults = await evaluator.reevaluate(found.cached.document, run.devices, found.skips);
  if (!ruleResults) return run;
  await deliveries.storeRuleResults(run, ruleResults);
  return { ...run, ruleResults };
};

type Row = BatchFacts & Pick<DeliveryDocument, "state" | "paused" | "tally">;

/**
 * Postpones a row whose provider is paused, or whose devices' servers are all blocked. So it stays one row, however long it waits.
 * Does nothing when the notification has ended.
 */
const postponeBlocked = async (deps: DueDeps, row: Row): Promise<boolean> => {
  if (row.state !== "waiting") return false;
  const blocked = await allBlockedUntil(deps, row);
  const cached = blocked && (await activeOf(deps, row));
  if (!blocked || !cached) return false;
  const expiresAt = expiryOf(cached, row).getTime();
  const turn = blocked.turn?.();
  const at = new Date(Math.min(turn !== undefined && turn < expiresAt ? turn : blocked.until, expiresAt));
  await deps.deliveries.postpone(row.projectId, row._id, at);
  await deps.dueMessages.schedule(row, at);
  return true;
};

/**
 * Until when all devices of a row are blocked, in milliseconds since 1970. Undefined when dispatch may send to some of them. `turn`: gives
 * the row the time to look again, if it waits for a server.
 */
const allBlockedUntil = async (
  { deliveries, pool, now }: DueDeps,
  row: Row,
): Promise<{ readonly until: number; readonly turn?: () => number } | undefined> => {
  const lookup = await pool.lookup(row.projectId, servingProvider(row));
  const at = now().getTime();
  if (lookup.kind === "paused") {
    if (!row.paused) return undefined;
    const until = await pool.trials.waitOf(row.projectId, servingProvider(row), lookup.nextTrialAt, row._id);
    return until === undefined ? undefined : { until };
  }
  if (lookup.kind !== "ready" || !lookup.channel.routes.anyBlocked()) return undefined;
  const { routes, client } = lookup.channel;
  let first: { readonly device: Sendable; readonly until: number } | undefined;
  for (const device of await deliveries.waiting(row.projectId, row._id)) {
    const until = blockedUntil(lookup.channel, device, row.platform, at);
    if (until === undefined) return undefined;
    if (!first || until < first.until) first = { device, until };
  }
  if (!first) return undefined;
  const { device, until } = first;
  if (until === ownWait(device)) return { until };
  return { until, turn: () => routes.turnFrom(client.routeOf(device, row.platform), device.id, until) };
};
