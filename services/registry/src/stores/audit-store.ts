import type { AuditCheck, KeysetPageOf, ListAuditRequest } from "@herald/contracts";
import { HeraldError, type MasterKeys } from "@herald/kit";
import {
  deadlineOptions,
  ensureIndexes,
  guardStore,
  type IndexSpec,
  indexName,
  insertMissing,
  isDuplicateKey,
  type RemovedBatch,
  retentionBatch,
} from "@herald/mongo";
import { type Db, type Filter, MongoBulkWriteError } from "mongodb";
import {
  type AuditDocument,
  type AuditFacts,
  type Checkpoint,
  chainFault,
  checkpointAt,
  checkpointFault,
  firstHash,
  nextRow,
  type Predecessor,
} from "../domain/audit-chain.ts";

const indexes = {
  event: { fields: { eventId: 1 }, purpose: "once", unique: true },
  operator: { fields: { "operator.id": 1, _id: 1 }, purpose: "list" },
  project: {
    fields: { targetProjectId: 1, _id: 1 },
    purpose: "list",
    partial: { targetProjectId: { $exists: true } },
  },
  action: { fields: { action: 1, _id: 1 }, purpose: "list" },
} as const satisfies Record<string, IndexSpec>;

/** A check ends after this many rows or this time, whichever comes first: its caller continues with `next`. */
const checkedTogether = 10_000;
const checkMs = 1_000;
/** Rows that are checked without a pause for other requests, in some ten milliseconds. */
const readTogether = 250;

type Head = { readonly _id: "head"; readonly sequence: number };
type Start = Checkpoint & { readonly _id: "start" };

export type AuditStore = ReturnType<typeof createAuditStore>;

/** The audit rows of the installation form one chain. No code changes a row; only retention removes rows, the oldest first. */
export const createAuditStore = (db: Db, masterKeys: MasterKeys) => {
  const rows = db.collection<AuditDocument>("auditRows");
  /** The sequence of the newest row ever written, so that a removed end of the chain is detected. */
  const heads = db.collection<Head>("auditHeads");

  const starts = db.collection<Start>("auditHeads");
  const readStart = () => starts.findOne({ _id: "start" }, { projection: { _id: 0 } }) as Promise<Checkpoint | null>;

  const lastRow = async () => (await rows.find({}, { hint: "_id_", sort: { _id: -1 }, limit: 1 }).toArray())[0];

  /** Whether another process has removed rows since `start` was read: then rows after it are missing for a good reason. */
  const hasMoved = async (start: Checkpoint | null): Promise<boolean> =>
    (await readStart())?.sequence !== start?.sequence;

  /**
   * Inserts rows up to the first one whose place another process has taken, so that the chain has no gap. Resolves to the number of
   * inserted rows.
   */
  const insertInOrder = async (added: readonly AuditDocument[]): Promise<number> => {
    try {
      return (await rows.insertMany([...added], { ordered: true })).insertedCount;
    } catch (error) {
      if (error instanceof MongoBulkWriteError && isDuplicateKey(error)) return error.insertedCount;
      throw error;
    }
  };

  /** Checks the next rows of the chain that begins after `start`. */
  const checkAfter = async (start: Checkpoint | null, after: number): Promise<AuditCheck> => {
    const removed = start ? { removed: { sequence: start.sequence, at: start.at.toISOString() } } : {};
    const from = Math.max(after, start?.sequence ?? 0);
    let last: Predecessor | undefined =
      from === start?.sequence
        ? { _id: start.sequence, hash: start.hash }
        : (from > 0 && (await rows.findOne({ _id: from }))) || undefined;
    let checked = 0;
    const head = () => (last ? { sequence: last._id, hash: last.hash } : null);
    const broken = (sequence: number, detail: string): AuditCheck => ({
      valid: false,
      checked,
      problem: { sequence, detail },
      head: head(),
      next: null,
      ...removed,
    });
    const valid = (next: string | null): AuditCheck => ({ valid: true, checked, head: head(), next, ...removed });
    const forged = start ? checkpointFault(masterKeys, start) : undefined;
    if (start && forged !== undefined) return broken(start.sequence, forged);
    if (from > 0 && last === undefined) return broken(from, "the row is missing");
    const begun = performance.now();
    for (;;) {
      const found = await rows
        .find(
          { _id: { $gt: last?._id ?? 0 } },
          { hint: "_id_", sort: { _id: 1 }, limit: readTogether, ...deadlineOptions() },
        )
        .toArray();
      for (const row of found) {
        const fault = chainFault(masterKeys, last, row);
        if (fault !== undefined) return broken(row._id, fault);
        last = row;
        checked++;
      }
      if (found.length < readTogether) break;
      if (checked >= checkedTogether || performance.now() - begun > checkMs) return valid(String(last?._id));
    }
    const written = (await heads.findOne({ _id: "head" }))?.sequence ?? 0;
    // A row may have been appended after the rows were read.
    const missing = (last?._id ?? 0) + 1;
    if (written >= missing && !(await rows.findOne({ _id: missing }))) return broken(missing, "the row is missing");
    return valid(null);
  };

  return guardStore({
    ensureIndexes: () => ensureIndexes(rows, Object.values(indexes)),

    /** Appends rows in this order, one for each event. Resolves to the rows of these events that had none before. */
    append: async (all: readonly AuditFacts[]): Promise<AuditDocument[]> => {
      const wanted = [...new Map(all.map((facts) => [facts.eventId, facts])).values()];
      const stored = async () =>
        new Set(
          (await rows.distinct("eventId", { eventId: { $in: wanted.map(({ eventId }) => eventId) } })) as string[],
        );
      const appended: AuditDocument[] = [];
      for (;;) {
        const known = await stored();
        const missing = wanted.filter(({ eventId }) => !known.has(eventId));
        if (missing.length === 0) return appended;
        // The head is read first, so the last row cannot be older than the head. If it is, rows were removed, and the gap must stay.
        const head = await heads.findOne({ _id: "head" });
        const newest = await lastRow();
        const sequence = Math.max(newest?._id ?? 0, head?.sequence ?? 0);
        let last: Predecessor = { _id: sequence, hash: newest?.hash ?? firstHash };
        const added = missing.map((facts) => {
          const row = nextRow(masterKeys, last, facts);
          last = row;
          return row;
        });
        const inserted = added.slice(0, await insertInOrder(added));
        appended.push(...inserted);
        const end = inserted.at(-1);
        if (end) await heads.updateOne({ _id: "head" }, { $max: { sequence: end._id } }, { upsert: true });
        if (inserted.length === missing.length) return appended;
      }
    },

    /** Newest first. */
    list: async ({ page, ...filters }: ListAuditRequest): Promise<KeysetPageOf<AuditDocument>> => {
      const { operator, action, targetProjectId, createdAfter, createdBefore } = filters;
      const before = page.after === "" ? undefined : Number(page.after);
      if (before !== undefined && !Number.isSafeInteger(before))
        throw new HeraldError("validation-failed", "after: must be the `next` of the last answer");
      const at = {
        ...(createdAfter !== undefined && { $gte: new Date(createdAfter) }),
        ...(createdBefore !== undefined && { $lt: new Date(createdBefore) }),
      };
      const filter: Filter<AuditDocument> = {
        ...(operator !== undefined && { "operator.id": operator }),
        ...(targetProjectId !== undefined && { targetProjectId }),
        ...(action !== undefined && { action }),
        ...(Object.keys(at).length > 0 && { at }),
        ...(before !== undefined && { _id: { $lt: before } }),
      };
      const index =
        (targetProjectId && indexes.project) ?? (operator && indexes.operator) ?? (action && indexes.action);
      const found = await rows
        .find(filter, {
          hint: index ? indexName(index) : "_id_",
          sort: { _id: -1 },
          limit: page.perPage + 1,
          ...deadlineOptions(),
        })
        .toArray();
      const data = found.slice(0, page.perPage);
      return { data, next: found.length > page.perPage ? String(data.at(-1)?._id) : null };
    },

    /** Checks the next rows of the chain. */
    check: async (after: number): Promise<AuditCheck> => {
      for (;;) {
        const start = await readStart();
        const result = await checkAfter(start, after);
        if (result.valid || !(await hasMoved(start))) return result;
      }
    },

    /**
     * Removes the oldest rows if they are older than `before`, and leaves a checkpoint that the next row follows. The newest row stays,
     * because the next one contains its hash. Throws when a row breaks the chain: tampered rows are evidence.
     */
    removeOld: async (before: Date): Promise<RemovedBatch> => {
      const start = await readStart();
      const from = start?.sequence ?? 0;
      // Rows that a crash left after the checkpoint was written.
      if (start) await rows.deleteMany({ _id: { $lte: from } });
      const oldest = await rows
        .find({ _id: { $gt: from } }, { hint: "_id_", sort: { _id: 1 }, limit: retentionBatch + 1 })
        .toArray();
      const young = oldest.findIndex(({ at }) => at >= before);
      const old = oldest.slice(0, young === -1 ? -1 : young).slice(0, retentionBatch);
      const end = old.at(-1);
      if (end === undefined) return { removed: 0, more: false };
      let last = start ? { _id: start.sequence, hash: start.hash } : undefined;
      let fault = start ? checkpointFault(masterKeys, start) : undefined;
      for (const row of old) {
        fault ??= chainFault(masterKeys, last, row);
        if (fault !== undefined && (await hasMoved(start))) return { removed: 0, more: true };
        if (fault !== undefined)
          throw new Error(`audit rows are not removed: row ${row._id}: ${fault}; run \`herald audit verify\``);
        last = row;
      }
      const checkpoint = checkpointAt(masterKeys, end);
      const isStored = start
        ? (await starts.updateOne({ _id: "start", sequence: from }, { $set: checkpoint })).matchedCount > 0
        : await insertMissing<Start>(starts, [{ _id: "start", ...checkpoint }]);
      // Another process has removed rows meanwhile.
      if (!isStored) return { removed: 0, more: true };
      await rows.deleteMany({ _id: { $lte: end._id } });
      return { removed: old.length, more: old.length === retentionBatch };
    },
  });
};
