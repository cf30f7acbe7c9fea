import { defineHandler, type MessageDelivery, preparePublish, publish } from "@herald/bus";
import { DeliverBatchV1, deliveryLine, deliveryQueue, ExpandedV1, ExpandV1, pagesOfExpansion } from "@herald/contracts";
import { createYieldIfDue, HeraldError, hasCode } from "@herald/kit";
import type { Deps } from "../deps.ts";
import {
  type Batch,
  bordersOf,
  nextPage,
  pageBuckets,
  partitionBatches,
  repartitionBatches,
} from "../domain/partition-batches.ts";
import { audienceQuery, firstRange, readPage } from "../requests/read-audience.ts";
import { queryOfExpansion } from "../requests/zone-audience.ts";
import type { ExpansionDocument } from "../stores/expansion-store.ts";
import { createPartitionRecipients } from "./recipients-page.ts";

/**
 * Full delivery queues, each with the one page that may retry it. If every waiting page retried, their batches would cross the
 * network forty times a second.
 */
export const createFullQueues = () => {
  const waiting = new Map<string, string>();
  return {
    /** @throws HeraldError `queue-full` while another page waits for the queue. */
    check: (queue: string, page: string): void => {
      const other = waiting.get(queue);
      if (other !== undefined && other !== page)
        throw new HeraldError("queue-full", "another page waits for this queue");
    },
    markFull: (queue: string, page: string): void => {
      if (!waiting.has(queue)) waiting.set(queue, page);
    },
    isWaiting: (queue: string, page: string): boolean => waiting.get(queue) === page,
    release: (queue: string, page: string): void => {
      if (waiting.get(queue) === page) waiting.delete(queue);
    },
  };
};

/**
 * Reads a page and partitions it into batches. The borders of its first partition are stored before anything is published. A
 * redelivery uses them again, even if devices have changed.
 */
export const partitionPage = async (
  { audience, expansions, now }: Pick<Deps, "audience" | "expansions" | "now">,
  message: ExpandV1,
) => {
  const { projectId, notificationId, page, fromBucket, toBucket, expansion } = message;
  const whole = await audienceQuery(projectId, message);
  const { query, byZone, first } = await queryOfExpansion(audience, whole, expansion);
  const chosen = byZone === undefined ? {} : { byZone };
  const range =
    toBucket === undefined
      ? (first ?? (await firstRange(audience, query, expansion.buckets)))
      : { from: fromBucket, to: toBucket };
  const { devices, matched } = await readPage(audience, query, range);
  const batches = partitionBatches(devices);
  const partition = { batches: bordersOf(batches), devices: devices.length, matched };

  const stored = await expansions.insert(page, {
    projectId,
    notificationId,
    fromBucket: range.from,
    toBucket: range.to,
    ...partition,
    at: now(),
  });
  if (!stored) return { range, batches, partition, ...chosen };

  const storedRange = { from: stored.fromBucket, to: stored.toBucket };
  const same = storedRange.from === range.from && storedRange.to === range.to;
  const current = same ? devices : (await readPage(audience, query, storedRange)).devices;
  return { range: storedRange, batches: repartitionBatches(current, stored.batches), partition: stored, ...chosen };
};

/** A page that is ready to be published. */
type PartitionedPage = {
  readonly batches: readonly Batch[];
  readonly partition: Pick<ExpansionDocument, "batches" | "devices" | "matched">;
  /** What is different in the command for the next page; undefined after the last. */
  readonly next: (Partial<ExpandV1> & Pick<ExpandV1, "page">) | undefined;
  /** How many buckets a page has; absent: its pages are not ranges of buckets. */
  readonly buckets?: number;
  /** Tells dispatch what was found. */
  readonly record?: () => Promise<unknown>;
};

type ExpandDeps = Pick<Deps, "bus" | "audience" | "expansions" | "now">;
type Hold = MessageDelivery<ExpandV1>["hold"];

/** @throws HeraldError `schema` for a range that no page with its number has. */
const partitionTargets = async (deps: ExpandDeps, data: ExpandV1): Promise<PartitionedPage> => {
  const { range, byZone, ...page } = await partitionPage(deps, data);
  const within = data.expansion.buckets;
  const buckets = pageBuckets(data.page, range, within);
  // Tried again, it would never succeed.
  if (buckets === undefined)
    throw new HeraldError("schema", `fromBucket: no page ${data.page} has the buckets ${range.from} to ${range.to}`);
  const next = nextPage(range, within);
  return {
    ...page,
    next: next && {
      page: data.page + 1,
      fromBucket: next.from,
      toBucket: next.to,
      expansion: { ...data.expansion, byZone },
    },
    // Its pages begin anywhere: their numbers do not say which buckets they have.
    ...(within === undefined && { buckets }),
  };
};

/** Publishes one page of an audience as delivery batches, then the command for the next page, or `ExpandedV1` after the last. */
export const expand = (deps: ExpandDeps) => {
  const fullQueues = createFullQueues();
  const partitionRecipients = createPartitionRecipients(deps);
  return defineHandler({
    durable: "registry-expand", // renaming a durable replays its stream
    message: ExpandV1,
    async handle({ data, hold }) {
      const queue = `${data.lane}/${data.projectId}/${deliveryLine(data)}`;
      const pageName = `${data.notificationId}/${data.page}`;
      try {
        // The page is read only when its queue has room: a waiting page costs nothing but its message.
        await hold(async () => fullQueues.check(queue, pageName));
        const { recipients: kind } = data;
        const page: PartitionedPage | undefined =
          kind === undefined ? await partitionTargets(deps, data) : await hold(() => partitionRecipients(data, kind));
        // The notification has ended.
        if (page === undefined) return;
        await publishBatches(deps, data, page.batches, hold, { fullQueues, queue, pageName });
        if (page.record) await hold(page.record);
        await publishNext(deps, data, page, hold);
      } finally {
        fullQueues.release(queue, pageName);
      }
    },
  });
};

/** Publishes all batches at once. After the queue was full it publishes them one by one, so that only one is refused. */
const publishBatches = async (
  { bus }: ExpandDeps,
  { projectId, notificationId, page, lane, expansion: { zones, buckets, skip }, expiresAt }: ExpandV1,
  batches: readonly Batch[],
  hold: Hold,
  { fullQueues, queue, pageName }: { fullQueues: ReturnType<typeof createFullQueues>; queue: string; pageName: string },
): Promise<void> => {
  const prepare = ({ devices, ...served }: Batch, n: number) => {
    const batchId = `${notificationId}/${page}/${n}`;
    // The notification's own time is another one.
    const own = (zones ?? buckets) && { expiresAt, ...(skip !== undefined && { skip }) };
    const message = { batchId, projectId, notificationId, lane, ...served, ...own, devices };
    return { queue: deliveryQueue(served), publish: preparePublish(bus, DeliverBatchV1, message, { id: batchId }) };
  };
  let left: ReturnType<typeof prepare>[] = [];
  const yieldIfDue = createYieldIfDue();
  for (const [n, batch] of batches.entries()) {
    await yieldIfDue();
    left.push(prepare(batch, n));
  }
  const publishOne = async (batch: (typeof left)[number]) => {
    await batch.publish();
    left = left.filter((other) => other !== batch);
  };
  await hold(async () => {
    fullQueues.check(queue, pageName);
    // Each provider has its own queue: the other queues may have room.
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
    if (hasCode(failed.reason, "queue-full")) fullQueues.markFull(queue, pageName);
    throw failed.reason;
  });
};

const publishNext = async (
  { bus, expansions }: ExpandDeps,
  data: ExpandV1,
  { next, buckets, partition }: PartitionedPage,
  hold: Hold,
) => {
  const { projectId, notificationId, page, targets, recipients } = data;
  const { n } = data.expansion;
  if (next) {
    await hold(() => publish(bus, ExpandV1, { ...data, ...next }, { id: `expand/${notificationId}/${next.page}` }));
    return;
  }
  const { batches, pageBatches, devices, matched } =
    page === n * pagesOfExpansion
      ? {
          batches: partition.batches.length,
          pageBatches: partition.batches.length,
          devices: partition.devices,
          matched: new Set(partition.matched),
        }
      : // Recipients have any number of pages, and one expansion.
        await expansions.totals(projectId, notificationId, recipients === undefined ? { n, page } : undefined);
  const unmatched = targets.filter((_, at) => !matched.has(at));
  const pages = buckets === undefined ? {} : { pages: { buckets, batches: pageBatches } };
  const message = { projectId, notificationId, n, batches, devices, unmatched, ...pages };
  await hold(() => publish(bus, ExpandedV1, message, { id: `expanded/${notificationId}/${n}` }));
};
