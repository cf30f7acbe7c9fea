import { type ProjectId, parseTarget, type Target } from "@herald/contracts";
import { createYieldIfDue, HeraldError } from "@herald/kit";
import { isDirect, type Lookup } from "../domain/audience.ts";
import { confirm } from "../domain/matched-targets.ts";
import type { Partitionable } from "../domain/partition-batches.ts";
import { allBuckets, type BucketRange, firstPage, smallAudience } from "../domain/plan-pages.ts";
import { type AudienceRow, recipientOf } from "../stores/audience-row.ts";
import type { AudienceStore } from "../stores/audience-store.ts";

/** Lookups of one page that run at a time; most pages have one. */
const lookupsAtATime = 4;

/**
 * The targets of a message, however many clauses their conditions have: a gateway that counts them refuses what is too many, and what
 * one that did not has accepted is sent.
 * @throws HeraldError `schema`: the gateway lets none through that are not understood.
 */
export const understood = async (sources: readonly string[]): Promise<Target[]> => {
  const targets: Target[] = [];
  const yieldIfDue = createYieldIfDue();
  for (const [at, source] of sources.entries()) {
    await yieldIfDue();
    const parsed = parseTarget(source);
    if ("problem" in parsed) throw new HeraldError("schema", `targets.${at}: ${parsed.problem}`);
    targets.push(parsed.target);
  }
  return targets;
};

/** Runs `work` for each item, a few at a time. */
const each = async <Item>(items: readonly Item[], work: (item: Item) => Promise<void>): Promise<void> => {
  const queue = [...items];
  const worker = async () => {
    for (let item = queue.shift(); item !== undefined; item = queue.shift()) await work(item);
  };
  await Promise.all(Array.from({ length: Math.min(lookupsAtATime, items.length) }, worker));
};

/**
 * The buckets of the first page of an audience. It is counted where it is small, estimated where it is large; a device that two
 * lookups find counts twice.
 */
export const firstRange = async (
  audience: AudienceStore,
  projectId: ProjectId,
  lookups: readonly Lookup[],
): Promise<BucketRange> => {
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

const candidateOf = (row: AudienceRow) => ({ ...row, id: row._id, facets: new Set(row.facets) });

export const partitionableOf = (row: AudienceRow): Partitionable => ({
  platform: row.platform,
  recipient: recipientOf(row),
  changedAt: row.updatedAt.getTime(),
});

export type Asked = {
  readonly projectId: ProjectId;
  readonly targets: readonly Target[];
  /** Those of the targets. */
  readonly lookups: readonly Lookup[];
};

/** A page's active devices, each once, and which targets named one of them, as sorted positions in their list. */
export const readPage = async (
  audience: AudienceStore,
  { projectId, targets, lookups }: Asked,
  range: BucketRange,
): Promise<{ devices: Partitionable[]; matched: number[] }> => {
  const devices = new Map<string, Partitionable>();
  const matched = new Set<number>();
  const confirming = { targets, candidateOf, yieldIfDue: createYieldIfDue() };
  await each(lookups, async (lookup) => {
    const rows = await audience.page(projectId, lookup, range);
    const { found, matched: named } = await confirm(lookup, rows, confirming);
    for (const row of found) devices.set(row._id, partitionableOf(row));
    for (const position of named) matched.add(position);
  });
  return { devices: [...devices.values()], matched: [...matched].sort((one, other) => one - other) };
};
