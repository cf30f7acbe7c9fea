import type { AuditCheck, KeysetPageOf, ListAuditRequest } from "@herald/contracts";
import { HeraldError, type MasterKeys } from "@herald/kit";
import { ensureIndexes, guardStore, type IndexSpec, indexName, isDuplicateKey } from "@herald/mongo";
import type { Db, Filter } from "mongodb";
import { type AuditDocument, type AuditFacts, faultOf, firstHash, nextRow } from "../domain/audit-chain.ts";

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

/** Rows that one check reads: some hundred milliseconds. */
const checkedTogether = 10_000;

type Head = { readonly _id: "head"; readonly sequence: number };

export type AuditStore = ReturnType<typeof createAuditStore>;

/** The audit rows of the installation, one chain. Rows are inserted and read; no code changes or removes one. */
export const createAuditStore = (db: Db, masterKeys: MasterKeys) => {
  const rows = db.collection<AuditDocument>("auditRows");
  /** The last row that was ever written, so that a removed end of the chain is found. */
  const heads = db.collection<Head>("auditHeads");

  const lastRow = async () => (await rows.find({}, { hint: "_id_", sort: { _id: -1 }, limit: 1 }).toArray())[0];

  return guardStore({
    ensureIndexes: () => ensureIndexes(rows, Object.values(indexes)),

    /** Appends a row, once for each event. Undefined: the event has a row already. */
    append: async (facts: AuditFacts): Promise<AuditDocument | undefined> => {
      for (;;) {
        if (await rows.findOne({ eventId: facts.eventId }, { projection: { _id: 1 } })) return undefined;
        // The head first: read after it, the last row is never behind it. If it is, rows were removed, and the gap must stay.
        const head = await heads.findOne({ _id: "head" });
        const last = await lastRow();
        const sequence = Math.max(last?._id ?? 0, head?.sequence ?? 0);
        const row = nextRow(masterKeys, { _id: sequence, hash: last?.hash ?? firstHash }, facts);
        try {
          await rows.insertOne(row);
        } catch (error) {
          // Another process has appended a row meanwhile.
          if (isDuplicateKey(error)) continue;
          throw error;
        }
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
      const previous = after === 0 ? undefined : ((await rows.findOne({ _id: after })) ?? undefined);
      let last: Pick<AuditDocument, "_id" | "hash"> | undefined = previous;
      let checked = 0;
      const broken = (sequence: number, detail: string): AuditCheck => ({
        valid: false,
        checked,
        problem: { sequence, detail },
        head: last ? { sequence: last._id, hash: last.hash } : null,
        next: null,
      });
      if (after > 0 && previous === undefined) return broken(after, "the row is missing");
      const cursor = rows.find({ _id: { $gt: after } }, { hint: "_id_", sort: { _id: 1 }, limit: checkedTogether });
      for await (const row of cursor) {
        const fault = faultOf(masterKeys, last, row);
        if (fault !== undefined) return broken(row._id, fault);
        last = row;
        checked++;
      }
      const head = last ? { sequence: last._id, hash: last.hash } : null;
      if (checked === checkedTogether) return { valid: true, checked, head, next: String(head?.sequence) };
      const written = (await heads.findOne({ _id: "head" }))?.sequence ?? 0;
      // A row may have been appended after the rows were read.
      const missing = (last?._id ?? 0) + 1;
      if (written >= missing && !(await rows.findOne({ _id: missing }))) return broken(missing, "the row is missing");
      return { valid: true, checked, head, next: null };
    },
  });
};
