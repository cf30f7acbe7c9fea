import type { ExpandV1 } from "@herald/contracts";
import type { Deps } from "../deps.ts";
import { audienceOf } from "../domain/audience.ts";
import { type Batch, bordersOf, partitionBatches, repartitionBatches } from "../domain/partition-batches.ts";
import type { BucketRange } from "../domain/plan-pages.ts";
import type { ExpansionDocument } from "../stores/expansion-store.ts";
import { firstRange, parseTargets, readPage } from "./read-audience.ts";

export type PartitionedPage = {
  readonly range: BucketRange;
  readonly batches: readonly Batch[];
  readonly partition: Pick<ExpansionDocument, "batches" | "devices" | "matched">;
};

/**
 * Reads a page and partitions it into batches. The borders of its first partition are stored before anything is published, and a
 * later one uses them, whichever devices have changed since.
 */
export const partitionPage = async (
  { audience, expansions, now }: Pick<Deps, "audience" | "expansions" | "now">,
  message: ExpandV1,
): Promise<PartitionedPage> => {
  const { projectId, notificationId, page, fromBucket, toBucket } = message;
  const targets = await parseTargets(message.targets);
  const lookups = audienceOf(targets);
  const range =
    toBucket === undefined ? await firstRange(audience, projectId, lookups) : { from: fromBucket, to: toBucket };
  const query = { projectId, targets, lookups };
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
  if (!stored) return { range, batches, partition };

  const storedRange = { from: stored.fromBucket, to: stored.toBucket };
  const same = storedRange.from === range.from && storedRange.to === range.to;
  const current = same ? devices : (await readPage(audience, query, storedRange)).devices;
  return { range: storedRange, batches: repartitionBatches(current, stored.batches), partition: stored };
};
