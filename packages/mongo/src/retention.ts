import { randomUUID } from "node:crypto";
import { type Logger, type PeriodicTask, runEvery } from "@herald/kit";
import type { Collection, Db, Document, Filter, Sort } from "mongodb";
import { anyOf, beginsWith } from "./batched.ts";
import { upsertOnce } from "./conflicts.ts";
import { byIndex, ensureIndexes, type IndexSpec } from "./ensure-indexes.ts";
import { projectAfter } from "./find-page.ts";
import { guardStore } from "./unavailable.ts";

/** The result of one batch. `more`: another batch may follow, from `after` for rules that walk. */
export type RemovedBatch = { readonly removed: number; readonly more: boolean; readonly after?: string | undefined };

/** How long documents are kept, and how a batch of older documents is removed. */
export type RetentionRule = {
  /** Names the claim in the database: renaming a rule restarts its walk. */
  readonly name: string;
  readonly keepMs: number;
  /** Removes at most one batch of documents older than `before`, by an index. Repeatable: two processes may run it at once. */
  readonly removeBatch: (before: Date, after: string | undefined) => Promise<RemovedBatch>;
};

/** The claim of one rule: the process that runs it, and its progress. */
type ClaimDocument = {
  readonly _id: string;
  /** When the next process may claim it: the end of a lease, or the time of the next pass. */
  readonly dueAt: Date;
  readonly by?: string;
  /** Where the next batch begins. */
  readonly after?: string;
  /** Documents older than this may be removed. Written before the first removal; never moves back. */
  readonly before?: Date;
};

export type RetentionOptions = {
  readonly db: Db;
  readonly rules: readonly RetentionRule[];
  /** The pause after a complete pass. */
  readonly everyMs: number;
  readonly now: () => Date;
  readonly log: Logger;
};

/** How often a service applies its rules, which count in days. A pass that finds nothing costs one replica a query for each collection. */
export const retentionEveryMs = 3_600_000;
/** Far longer than a batch takes. A killed process blocks its rule for this long. */
const leaseMs = 60_000;
/** How often a process looks for a rule that is due. */
const maxPollMs = 60_000;
/** After this many batches another process may continue, so that replicas share a large backlog. */
const batchesPerClaim = 20;
/** Documents per batch: few enough to let other writes through between two batches. */
export const retentionBatch = 2_000;

const claimCollection = (db: Db): Collection<ClaimDocument> => db.collection("retentionClaims");

/**
 * A rule has removed no document from this time or later; undefined when it never removed any. Throws `database-unavailable` when the
 * database is unavailable.
 */
export const readRetentionMark = guardStore({
  read: async (db: Db, rule: string): Promise<Date | undefined> =>
    (await claimCollection(db).findOne({ _id: rule }))?.before,
}).read;

const createClaims = (db: Db) => {
  const claims = claimCollection(db);
  return guardStore({
    /** Undefined when another process has the claim, or the next pass is not due yet. */
    claim: async (name: string, before: Date, now: Date): Promise<ClaimDocument | undefined> => {
      const dueAt = new Date(0);
      await upsertOnce(() => claims.updateOne({ _id: name }, { $setOnInsert: { dueAt } }, { upsert: true }));
      const claimed = await claims.findOneAndUpdate(
        { _id: name, dueAt: { $lte: now } },
        { $set: { by: randomUUID(), dueAt: new Date(now.getTime() + leaseMs) }, $max: { before } },
        { returnDocument: "after" },
      );
      return claimed ?? undefined;
    },

    /** Renews the lease and stores the progress. False when the lease ended and another process has the claim. */
    renew: async ({ _id, by }: Claim, after: string | undefined, now: Date): Promise<boolean> => {
      const dueAt = new Date(now.getTime() + leaseMs);
      const update = after === undefined ? { $set: { dueAt }, $unset: { after: "" } } : { $set: { dueAt, after } };
      return (await claims.updateOne({ _id, by }, update as Document)).matchedCount === 1;
    },

    /** Releases the claim; another process may take it from `dueAt` on. */
    release: async ({ _id, by }: Claim, dueAt: Date): Promise<void> => {
      await claims.updateOne({ _id, by }, { $set: { dueAt }, $unset: { by: "" } });
    },
  });
};

type Claim = Pick<ClaimDocument, "_id"> & { readonly by: string };

/**
 * Applies every due rule that no other process has claimed, until none is left. One process at a time runs a rule, for some batches, so
 * replicas share the work without repeating it. When the lease of a killed process ends, another process continues at its position.
 */
export const applyRetention = async ({ db, rules, everyMs, now, log }: RetentionOptions, signal: AbortSignal) => {
  const claims = createClaims(db);

  /** Runs some batches of one rule. Resolves to true when the rule is not finished. */
  const takeTurn = async ({ name, keepMs, removeBatch }: RetentionRule): Promise<boolean> => {
    const before = new Date(now().getTime() - keepMs);
    const claimed = await claims.claim(name, before, now());
    if (claimed?.by === undefined) return false;
    const claim = { _id: name, by: claimed.by };
    let { after } = claimed;
    let removed = 0;
    let more = true;
    for (let batch = 0; more && batch < batchesPerClaim && !signal.aborted; batch++) {
      const done = await removeBatch(before, after);
      removed += done.removed;
      ({ more, after } = done);
      if (!(await claims.renew(claim, more ? after : undefined, now()))) return true;
    }
    await claims.release(claim, more ? now() : new Date(now().getTime() + everyMs));
    if (removed > 0) log.info({ rule: name, removed }, "removed documents older than their retention");
    return more;
  };

  const open = new Set(rules);
  while (open.size > 0) for (const rule of open) if (signal.aborted || !(await takeTurn(rule))) open.delete(rule);
};

/** Runs {@link applyRetention} regularly until the service stops. Any number of processes may run it. */
export const startRetention = (options: RetentionOptions): PeriodicTask =>
  runEvery("retention", Math.min(options.everyMs, maxPollMs), options.log, (signal) => applyRetention(options, signal));

/** Removes the first matching documents in the order of an index, at most one batch. Resolves to their ids. */
export const removeFirst = async <Doc extends { readonly _id: string; readonly projectId: string }>(
  collection: Collection<Doc>,
  filter: Document,
  { hint, sort, limit = retentionBatch }: { hint: string; sort: Sort; limit?: number },
): Promise<string[]> => {
  const page = (await collection
    .find(filter as Filter<Doc>, { hint, projection: { _id: 1, projectId: 1 } })
    .sort(sort)
    .limit(limit)
    .toArray()) as unknown as { readonly _id: string; readonly projectId: string }[];
  if (page.length === 0) return [];
  const ids = page.map(({ _id }) => _id);
  const projectId = anyOf(page.map((row) => row.projectId));
  await collection.deleteMany({ projectId, _id: anyOf(ids) } as unknown as Filter<Doc>);
  return ids;
};

/** What every store of the documents of projects has. `byProject`: an index that begins with the project; absent: the ids do, before `/`. */
export const projectRows = <Doc extends { readonly _id: string; readonly projectId: string }>(
  collection: Collection<Doc>,
  indexes: Readonly<Record<string, IndexSpec>>,
  byProject?: IndexSpec,
) => ({
  ensureIndexes: () => ensureIndexes(collection, Object.values(indexes)),

  /** Removes up to `limit` documents of a project. Resolves to how many. */
  removePage: async (projectId: string, limit = retentionBatch): Promise<number> => {
    const filter = { projectId, ...(!byProject && { _id: beginsWith(`${projectId}/`) }) };
    const order = byProject ? byIndex(byProject) : { hint: "_id_", sort: { _id: 1 } as const };
    return (await removeFirst(collection, filter, { ...order, limit })).length;
  },
});

/** Removes documents like {@link removeFirst}, as one batch of a retention rule. */
export const removeOldest = async <Doc extends { readonly _id: string; readonly projectId: string }>(
  collection: Collection<Doc>,
  filter: Document,
  options: { hint: string; sort: Sort },
): Promise<RemovedBatch> => {
  const { length } = await removeFirst(collection, filter, options);
  return { removed: length, more: length === retentionBatch };
};

/** Few enough that a batch without matches ends within its lease. */
const projectsPerBatch = 100;

/**
 * Walks from project to project by an index that begins with the project, and removes documents that match `filters`. An index by time
 * alone would slow down every write. `sort`: the fields of the index.
 */
export const removeByProject = async <Doc extends { readonly _id: string; readonly projectId: string }>(
  collection: Collection<Doc>,
  { hint, sort, filters }: { hint: string; sort: Sort; filters: (projectId: string) => readonly Document[] },
  after: string | undefined,
): Promise<RemovedBatch> => {
  const nextProject = projectAfter(collection, { hint, sort });
  let removed = 0;
  let done = after;
  for (let project = 0; project < projectsPerBatch; project++) {
    const next = await nextProject(done ?? "");
    if (next === undefined) return { removed, more: false };
    for (const filter of filters(next)) {
      const { length } = await removeFirst(collection, filter, { hint, sort });
      removed += length;
      if (length === retentionBatch) return { removed, more: true, after: done };
    }
    done = next;
  }
  return { removed, more: true, after: done };
};
