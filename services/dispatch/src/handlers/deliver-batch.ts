import { type Delivery, defineHandler } from "@herald/bus";
import { DeliverBatchV1 } from "@herald/contracts";
import type { FairGate } from "@herald/kit";
import { HeraldError } from "@herald/kit";
import type { NotificationCache } from "../delivery/notification-cache.ts";
import type { Pipeline } from "../delivery/pipeline.ts";
import type { CheckWaiting } from "../delivery/prepare.ts";
import { unitsOf } from "../domain/gate-units.ts";
import { type Claim, rootOf } from "../stores/delivery-document.ts";
import type { DeliveryStore } from "../stores/delivery-store.ts";

/** One for each lane and platform, so that no broadcast and no slow provider keeps another lane or platform waiting. */
export const deliverDurables = [
  "dispatch-direct-ios",
  "dispatch-direct-android",
  "dispatch-direct-web",
  "dispatch-broadcast-ios",
  "dispatch-broadcast-android",
  "dispatch-broadcast-web",
] as const;

/** Which message a row is sent for, the same for every redelivery: the moment is not enough, for two can share it. */
export const claimOf = ({ publishedAt, sequence }: Pick<Delivery<unknown>, "publishedAt" | "sequence">): Claim => ({
  at: publishedAt.getTime(),
  sequence,
});

/** A batch that waited longer in its queue asks again whose its devices are, where that matters. */
const freshMs = 2_000;

/** A batch of devices: ledger row, pushes, outcomes, ack, in this order. */
export const deliverBatch = ({
  durable,
  concurrency,
  gate,
  cache,
  deliveries,
  pipeline,
  checkWaiting,
  now,
}: {
  durable: (typeof deliverDurables)[number];
  /** Batches in memory; the gate says how many of them are sent at a time, and whose. */
  concurrency: number;
  gate: FairGate;
  cache: NotificationCache;
  deliveries: DeliveryStore;
  pipeline: Pipeline;
  checkWaiting: CheckWaiting;
  now: () => Date;
}) =>
  defineHandler({
    durable, // renaming a durable replays its stream
    message: DeliverBatchV1,
    concurrency,
    async handle({ data, signal, ...message }) {
      const { batchId, projectId, notificationId } = data;
      const leave = await gate.enter(projectId, unitsOf(data.devices.length));
      try {
        const cached = await cache.get(projectId, notificationId);
        if (!cached) throw new HeraldError("notification-not-found", `the batch ${batchId} belongs to no notification`);
        // Before the row is claimed: while registry cannot be asked, nothing has begun.
        const waited = cached.personal && now().getTime() - message.publishedAt.getTime() > freshMs;
        const moved = waited ? await checkWaiting(projectId, data.devices, true) : undefined;
        const run = await deliveries.start(data, claimOf(message), now(), cached.document.tags);
        if (run) await pipeline.deliver(run, signal, moved);
        // Settled before: what follows from that may have been cut off.
        else await pipeline.resume(rootOf(data));
      } finally {
        leave();
      }
    },
  });
