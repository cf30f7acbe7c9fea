import { type Bus, type Delivery, defineHandler, preparePublish, publish } from "@herald/bus";
import { DeliverBatchV1, deliveryLine, ExpandedV1, ExpandV1 } from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import type { Batch } from "../domain/partition-batches.ts";
import { nextPage } from "../domain/plan-pages.ts";
import type { AudienceStore } from "../stores/audience-store.ts";
import type { ExpansionStore } from "../stores/expansion-store.ts";
import { createFullQueues, type FullQueues } from "./full-queues.ts";
import { type PartitionedPage, partitionPage } from "./partition-page.ts";

type Parts = {
  readonly bus: Bus;
  readonly audience: AudienceStore;
  readonly expansions: ExpansionStore;
  readonly now: () => Date;
};

type Hold = Delivery<ExpandV1>["hold"];

/** One page of an audience becomes delivery batches; then the next page is asked for, or dispatch is told that there is none. */
export const expand = (parts: Parts) => {
  const full = createFullQueues();
  return defineHandler({
    durable: "registry-expand", // renaming a durable replays its stream
    message: ExpandV1,
    async handle({ data, hold }) {
      const queue = `${data.lane}/${data.projectId}/${deliveryLine(data)}`;
      const name = `${data.notificationId}/${data.page}`;
      try {
        // Not read before there is room for it: what waits then costs nothing but its message.
        await hold(async () => full.pass(queue, name));
        const page = await partitionPage(parts, data);
        await publishBatches(parts.bus, data, page.batches, hold, { full, queue, name });
        await goOn(parts, data, page, hold);
      } finally {
        full.leave(queue, name);
      }
    },
  });
};

/** All in flight at once; one after the other from where the queue was full, so that it is one batch that is refused and not all. */
const publishBatches = async (
  bus: Bus,
  { projectId, notificationId, page, lane }: ExpandV1,
  batches: readonly Batch[],
  hold: Hold,
  waiting: { full: FullQueues; queue: string; name: string },
): Promise<void> => {
  const { full, queue, name } = waiting;
  let left = batches.map(({ platform, devices }, n) => {
    const batchId = `${notificationId}/${page}/${n}`;
    const message = { batchId, projectId, notificationId, lane, platform, devices: [...devices] };
    return { platform, publish: preparePublish(bus, DeliverBatchV1, message, { id: batchId }) };
  });
  const send = async (batch: (typeof left)[number]) => {
    await batch.publish();
    left = left.filter((other) => other !== batch);
  };
  await hold(async () => {
    full.pass(queue, name);
    try {
      if (full.waitsFor(queue, name)) {
        await eachPlatform(left, send);
      } else {
        const results = await Promise.allSettled(left.map(send));
        const failed = results.find((result) => result.status === "rejected");
        if (failed) throw failed.reason;
      }
    } catch (error) {
      if (error instanceof HeraldError && error.code === "queue-full") full.refused(queue, name);
      throw error;
    }
  });
};

/** A full queue is one platform's: the others go on. */
const eachPlatform = async <Item extends Pick<Batch, "platform">>(
  batches: readonly Item[],
  send: (batch: Item) => Promise<void>,
) => {
  const results = await Promise.allSettled(
    [...new Set(batches.map(({ platform }) => platform))].map(async (platform) => {
      for (const batch of batches) if (batch.platform === platform) await send(batch);
    }),
  );
  const failed = results.find((result) => result.status === "rejected");
  if (failed) throw failed.reason;
};

const goOn = async ({ bus, expansions }: Parts, data: ExpandV1, { range, partition }: PartitionedPage, hold: Hold) => {
  const { projectId, notificationId, page, targets } = data;
  const next = nextPage(range);
  if (next) {
    const message = { ...data, page: page + 1, fromBucket: next.from, toBucket: next.to };
    await hold(() => publish(bus, ExpandV1, message, { id: `expand/${notificationId}/${page + 1}` }));
    return;
  }
  const { batches, devices, matched } =
    page === 0
      ? { batches: partition.batches.length, devices: partition.devices, matched: new Set(partition.matched) }
      : await expansions.totals(projectId, notificationId);
  const unmatched = targets.filter((_, at) => !matched.has(at));
  const message = { projectId, notificationId, batches, devices, unmatched };
  await hold(() => publish(bus, ExpandedV1, message, { id: `expanded/${notificationId}` }));
};
