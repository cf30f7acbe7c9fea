import { type ExpandV1, parseTarget, type Target } from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import { audienceOf, isDirect, type Lookup } from "../domain/audience.ts";
import { type Batch, bordersOf, type Dealable, dealBatches, redealBatches } from "../domain/deal-batches.ts";
import { matchedTargets } from "../domain/matched-targets.ts";
import { matches } from "../domain/matches.ts";
import { allBuckets, type BucketRange, firstPage, smallAudience } from "../domain/plan-pages.ts";
import { type AudienceRow, type AudienceStore, addresseeOf } from "../stores/audience-store.ts";
import type { ExpansionDocument, ExpansionStore } from "../stores/expansion-store.ts";

/** Lookups of one page that run at a time; most pages have one. */
const lookupsAtATime = 4;

export type DealtPage = {
  readonly range: BucketRange;
  readonly batches: readonly Batch[];
  /** What is stored of it. */
  readonly deal: Pick<ExpansionDocument, "batches" | "devices" | "matched">;
};

type Stores = { readonly audience: AudienceStore; readonly expansions: ExpansionStore; readonly now: () => Date };

const understood = (sources: readonly string[]): Target[] =>
  sources.map((source, at) => {
    const parsed = parseTarget(source);
    if ("problem" in parsed) throw new HeraldError("schema", `targets.${at}: ${parsed.problem}`);
    return parsed.target;
  });

/** Runs `work` for each item, a few at a time. */
const each = async <Item>(items: readonly Item[], work: (item: Item) => Promise<void>): Promise<void> => {
  const queue = [...items];
  const worker = async () => {
    for (let item = queue.shift(); item !== undefined; item = queue.shift()) await work(item);
  };
  await Promise.all(Array.from({ length: Math.min(lookupsAtATime, items.length) }, worker));
};

/** Counted where it is small, estimated where it is large; a device that two lookups find counts twice. */
const firstRange = async ({ audience }: Stores, { projectId }: ExpandV1, lookups: readonly Lookup[]) => {
  if (isDirect(lookups)) return allBuckets;
  let size = 0;
  await each(lookups, async (lookup) => {
    if (size <= smallAudience) size += await audience.countUpTo(projectId, lookup, smallAudience + 1);
  });
  if (size <= smallAudience) return allBuckets;
  size = 0;
  await each(lookups, async (lookup) => {
    size += await audience.estimate(projectId, lookup);
  });
  return firstPage(size);
};

const candidateOf = (row: AudienceRow) => ({ ...row, id: row._id, facets: row.facets ?? [] });

const dealableOf = (row: AudienceRow): Dealable => ({
  platform: row.platform,
  addressee: addresseeOf(row),
  changedAt: row.updatedAt.getTime(),
});

/** A page's active devices, each once, and which targets named one of them. */
const readPage = async (
  { audience }: Stores,
  { projectId }: ExpandV1,
  targets: readonly Target[],
  lookups: readonly Lookup[],
  range: BucketRange,
): Promise<{ devices: Dealable[]; matched: number[] }> => {
  const devices = new Map<string, Dealable>();
  const matched = new Set<number>();
  await each(lookups, async (lookup) => {
    const rows = await audience.page(projectId, lookup, range);
    const [at] = lookup.targets;
    const target = at === undefined ? undefined : targets[at];
    // The database also finds a value inside of lists, which targets do not enter.
    const found = lookup.by === "value" && target ? rows.filter((row) => matches(target, candidateOf(row))) : rows;
    for (const row of found) devices.set(row._id, dealableOf(row));
    for (const position of matchedTargets(lookup, targets, found, candidateOf)) matched.add(position);
  });
  return { devices: [...devices.values()], matched: [...matched].sort((one, other) => one - other) };
};

/**
 * Reads a page and deals it into batches. The first deal of a page is stored before anything of it is published, and from then on it
 * counts: a later one has the same borders, whatever has become of the devices.
 */
export const dealPage = async (stores: Stores, message: ExpandV1): Promise<DealtPage> => {
  const { projectId, notificationId, page, fromBucket, toBucket } = message;
  const targets = understood(message.targets);
  const lookups = audienceOf(targets);
  const range =
    toBucket === undefined ? await firstRange(stores, message, lookups) : { from: fromBucket, to: toBucket };
  const { devices, matched } = await readPage(stores, message, targets, lookups, range);
  const batches = dealBatches(devices);
  const deal = { batches: bordersOf(batches), devices: devices.length, matched };

  const stored = await stores.expansions.keep(page, {
    projectId,
    notificationId,
    fromBucket: range.from,
    toBucket: range.to,
    ...deal,
    at: stores.now(),
  });
  if (!stored) return { range, batches, deal };

  const storedRange = { from: stored.fromBucket, to: stored.toBucket };
  const same = storedRange.from === range.from && storedRange.to === range.to;
  const again = same ? devices : (await readPage(stores, message, targets, lookups, storedRange)).devices;
  return { range: storedRange, batches: redealBatches(again, stored.batches), deal: stored };
};
