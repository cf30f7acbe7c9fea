import type { AuditCheck, KeysetPageOf, ListAuditRequest } from "@herald/contracts";
import { HeraldError, type MasterKeys } from "@herald/kit";
import {
  ensureIndexes,
  guardStore,
  type IndexSpec,
  indexName,
  insertMissing,
  type RemovedBatch,
  retentionBatch,
} from "@herald/mongo";
import type { Db, Filter } from "mongodb";
import {
  type AuditDocument,
  type AuditFacts,
  type Checkpoint,
  checkpointAt,
  checkpointFault,
  faultOf,
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

/** Rows that one check reads, in a few hundred milliseconds. */
const checkedTogether = 10_000;

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
    const cursor = rows.find({ _id: { $gt: from } }, { hint: "_id_", sort: { _id: 1 }, limit: checkedTogether });
    for await (const row of cursor) {
      const fault = faultOf(masterKeys, last, row);
      if (fault !== undefined) return broken(row._id, fault);
      last = row;
      checked++;
    }
    if (checked === checkedTogether) return valid(String(last?._id));
    const written = (await heads.findOne({ _id: "head" }))?.sequence ?? 0;
    // A row may have been appended after the rows were read.
    const missing = (last?._id ?? 0) + 1;
    if (written >= missing && !(await rows.findOne({ _id: missing }))) return broken(missing, "the row is missing");
    return valid(null);
  };

  return guardStore({
    ensureIndexes: () => ensureIndexes(rows, Object.values(indexes)),

    /** Appends a row, once for each event. Undefined: the event has a row already. */
    append: async (facts: AuditFacts): Promise<AuditDocument | undefined> => {
      for (;;) {
        if (await rows.findOne({ eventId: facts.eventId }, { projection: { _id: 1 } })) return undefined;
        // The head is read first, so the last row cannot be older than the head. If it is, rows were removed, and the gap must stay.
        const head = await heads.findOne({ _id: "head" });
        const last = await lastRow();
        const sequence = Math.max(last?._id ?? 0, head?.sequence ?? 0);
        const row = nextRow(masterKeys, { _id: sequence, hash: last?.hash ?? firstHash }, facts);
        // Another process may have appended a row meanwhile.
        if (!(await insertMissing(rows, [row]))) continue;
        await heads.updateOne({ _id: "head" }, { $max: { sequence: row._id } }, { upsert: true });
        return row;
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
        .find(filter, { hint: index ? indexName(index) : "_id_", sort: { _id: -1 }, limit: page.perPage + 1 })
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
        fault ??= faultOf(masterKeys, last, row);
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
