import type { ExpandV1 } from "@herald/contracts";
import { audienceOf } from "../domain/audience.ts";
import { type Batch, bordersOf, partitionBatches, repartitionBatches } from "../domain/partition-batches.ts";
import type { BucketRange } from "../domain/plan-pages.ts";
import type { AudienceStore } from "../stores/audience-store.ts";
import type { ExpansionDocument, ExpansionStore } from "../stores/expansion-store.ts";
import { firstRange, readPage, understood } from "./read-audience.ts";

export type PartitionedPage = {
  readonly range: BucketRange;
  readonly batches: readonly Batch[];
  /** What is stored of it. */
  readonly partition: Pick<ExpansionDocument, "batches" | "devices" | "matched">;
};

type Stores = { readonly audience: AudienceStore; readonly expansions: ExpansionStore; readonly now: () => Date };

/**
 * Reads a page and partitions it into batches. The first partition of a page is stored before anything of it is published, and from then on it
 * counts: a later one has the same borders, whatever has become of the devices.
 */
export const partitionPage = async (stores: Stores, message: ExpandV1): Promise<PartitionedPage> => {
  const { projectId, notificationId, page, fromBucket, toBucket } = message;
  const targets = await understood(message.targets);
  const lookups = audienceOf(targets);
  const range =
    toBucket === undefined ? await firstRange(stores.audience, projectId, lookups) : { from: fromBucket, to: toBucket };
  const asked = { projectId, targets, lookups };
  const { devices, matched } = await readPage(stores.audience, asked, range);
  const batches = partitionBatches(devices);
  const partition = { batches: bordersOf(batches), devices: devices.length, matched };

  const stored = await stores.expansions.keep(page, {
    projectId,
    notificationId,
    fromBucket: range.from,
    toBucket: range.to,
    ...partition,
    at: stores.now(),
  });
  if (!stored) return { range, batches, partition };

  const storedRange = { from: stored.fromBucket, to: stored.toBucket };
  const same = storedRange.from === range.from && storedRange.to === range.to;
  const again = same ? devices : (await readPage(stores.audience, asked, storedRange)).devices;
  return { range: storedRange, batches: repartitionBatches(again, stored.batches), partition: stored };
};
