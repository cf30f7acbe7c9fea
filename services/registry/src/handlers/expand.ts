import { type Delivery, defineHandler, preparePublish, publish } from "@herald/bus";
import { DeliverBatchV1, deliveryLine, deliveryQueue, ExpandedV1, ExpandV1 } from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import type { Deps } from "../deps.ts";
import type { Batch } from "../domain/partition-batches.ts";
import { nextPage, pageBuckets } from "../domain/plan-pages.ts";
import { createFullQueues, type FullQueues } from "./full-queues.ts";
import { type PartitionedPage, partitionPage } from "./partition-page.ts";

type ExpandDeps = Pick<Deps, "bus" | "audience" | "expansions" | "now">;
type Hold = Delivery<ExpandV1>["hold"];

/** Publishes one page of an audience as delivery batches, then the command for the next page, or the end to dispatch. */
export const expand = (deps: ExpandDeps) => {
  const fullQueues = createFullQueues();
  return defineHandler({
    durable: "registry-expand", // renaming a durable replays its stream
    message: ExpandV1,
    async handle({ data, hold }) {
      const queue = `${data.lane}/${data.projectId}/${deliveryLine(data)}`;
      const pageName = `${data.notificationId}/${data.page}`;
      try {
        // The page is read only when its queue has room: a waiting page costs nothing but its message.
        await hold(async () => fullQueues.check(queue, pageName));
        const page = await partitionPage(deps, data);
        await publishBatches(deps, data, page.batches, hold, { fullQueues, queue, pageName });
        await publishNext(deps, data, page, hold);
      } finally {
        fullQueues.release(queue, pageName);
      }
    },
  });
};

/** Publishes all batches at once; one after another once the queue was full, so that only one of them is refused. */
const publishBatches = async (
  { bus }: ExpandDeps,
  { projectId, notificationId, page, lane }: ExpandV1,
  batches: readonly Batch[],
  hold: Hold,
  { fullQueues, queue, pageName }: { fullQueues: FullQueues; queue: string; pageName: string },
): Promise<void> => {
  let left = batches.map(({ devices, ...served }, n) => {
    const batchId = `${notificationId}/${page}/${n}`;
    const message = { batchId, projectId, notificationId, lane, ...served, devices: [...devices] };
    return { queue: deliveryQueue(served), publish: preparePublish(bus, DeliverBatchV1, message, { id: batchId }) };
  });
  const publishOne = async (batch: (typeof left)[number]) => {
    await batch.publish();
    left = left.filter((other) => other !== batch);
  };
  await hold(async () => {
    fullQueues.check(queue, pageName);
    // Each provider has a queue: the others continue.
    const groups = fullQueues.isWaiting(queue, pageName)
      ? [...Map.groupBy(left, (batch) => batch.queue).values()]
      : left.map((batch) => [batch]);
    const results = await Promise.allSettled(
      groups.map(async (group) => {
        for (const batch of group) await publishOne(batch);
      }),
    );
    const failed = results.find((result) => result.status === "rejected");
    if (!failed) return;
    if (failed.reason instanceof HeraldError && failed.reason.code === "queue-full")
      fullQueues.markFull(queue, pageName);
    throw failed.reason;
  });
};

const publishNext = async (
  { bus, expansions }: ExpandDeps,
  data: ExpandV1,
  { range, partition }: PartitionedPage,
  hold: Hold,
) => {
  const { projectId, notificationId, page, targets } = data;
  const next = nextPage(range);
  if (next) {
    const message = { ...data, page: page + 1, fromBucket: next.from, toBucket: next.to };
    await hold(() => publish(bus, ExpandV1, message, { id: `expand/${notificationId}/${page + 1}` }));
    return;
  }
  const { batches, pageBatches, devices, matched } =
    page === 0
      ? {
          batches: partition.batches.length,
          pageBatches: partition.batches.length,
          devices: partition.devices,
          matched: new Set(partition.matched),
        }
      : await expansions.totals(projectId, notificationId);
  const unmatched = targets.filter((_, at) => !matched.has(at));
  const pages = { buckets: pageBuckets(page, range), batches: pageBatches };
  const message = { projectId, notificationId, batches, devices, unmatched, pages };
  await hold(() => publish(bus, ExpandedV1, message, { id: `expanded/${notificationId}` }));
};
