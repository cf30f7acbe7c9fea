import { once } from "node:events";
import {
  AuditCheck,
  AuditExportQuery,
  AuditQuery,
  AuditRow,
  keysetPageOf,
  ListAudit,
  VerifyAudit,
  VerifyAuditQuery,
} from "@herald/contracts";
import type { z } from "zod";
import { viewer } from "../auth/caller.ts";
import { keysetRequest, ok, pageReply } from "../http/reply.ts";
import { dataOf, defineRoute, type StreamBody } from "../http/route.ts";

/** Rows of one page of an export. */
const exportPage = 100;
/** A client that reads nothing for this long is disconnected. */
const drainTimeoutMs = 30_000;

const filtersOf = (query: z.output<typeof AuditExportQuery>) => ({
  operator: query.operator,
  action: query.action,
  targetProjectId: query.project_id,
  createdAfter: query.created_after,
  createdBefore: query.created_before,
});

const listAudit = defineRoute("listAudit", "get /admin/v1/audit", {
  summary: "List what operators did, newest first",
  description:
    "A row for each change under `/admin/v1`, each sign-in, and each change or send by an operator under `/api/v1`. It is written before the change is made, so a change that was refused afterwards has a row too. Rows appear within a second.",
  access: viewer,
  query: AuditQuery,
  responses: { 200: { description: "A page of audit rows", schema: keysetPageOf(AuditRow) } },
  handle: async ({ sendRequest }, { query }) =>
    pageReply(await sendRequest(ListAudit, { page: keysetRequest(query), ...filtersOf(query) })),
});

const exportAudit = defineRoute("exportAudit", "get /admin/v1/audit/export", {
  summary: "Export what operators did, as NDJSON",
  description:
    "One audit row a line, newest first. If Herald cannot read on, it closes the connection without the last chunk.",
  access: viewer,
  query: AuditExportQuery,
  responses: { 200: { description: "Audit rows, one a line", schema: AuditRow, download: ["application/x-ndjson"] } },
  handle: async ({ sendRequest }, { query }) => {
    const read = (after: string) =>
      sendRequest(ListAudit, { page: { after, perPage: exportPage }, ...filtersOf(query) });
    // Reads before the response begins, so that an unavailable database causes a 503.
    const first = await read("");
    const write: StreamBody = async (response) => {
      try {
        for (let page = first; ; page = await read(page.next)) {
          const lines = page.data.map((row) => `${JSON.stringify(row)}\n`).join("");
          if (lines !== "" && !response.write(lines))
            await once(response, "drain", { signal: AbortSignal.timeout(drainTimeoutMs) });
          if (page.next === null) break;
        }
        response.end();
      } catch {
        // The client disconnected or stopped reading, or a read failed. Ending the response would make it look like a complete export.
        response.destroy();
      }
    };
    return { status: 200 as const, body: write, headers: { "content-type": "application/x-ndjson; charset=utf-8" } };
  },
});

const verifyAudit = defineRoute("verifyAudit", "get /admin/v1/audit/verify", {
  summary: "Check the chain of audit rows",
  description:
    "Each row contains the hash of the row before it, sealed with a master key of registry. Finds rows that were changed, forged or removed. Checks up to 10,000 rows and continues with `after`.",
  access: viewer,
  query: VerifyAuditQuery,
  responses: { 200: { description: "The result for these rows", schema: dataOf(AuditCheck) } },
  handle: async ({ sendRequest }, { query }) => ok(await sendRequest(VerifyAudit, { after: Number(query.after ?? 0) })),
});

export const auditRoutes = [listAudit, exportAudit, verifyAudit];
