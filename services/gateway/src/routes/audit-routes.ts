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
import { z } from "zod";
import { viewer } from "../auth/caller.ts";
import { keysetRequest, pageReply } from "../http/page-reply.ts";
import { ok } from "../http/reply.ts";
import { defineRoute, type StreamBody } from "../http/route.ts";

const tag = "Administration";

/** Rows that are read together for an export. */
const exportPage = 100;
/** A client that reads nothing for this long is disconnected. */
const drainTimeoutMs = 30_000;

const filtersOf = (query: z.output<typeof AuditExportQuery>) => ({
  ...(query.operator !== undefined && { operator: query.operator }),
  ...(query.action !== undefined && { action: query.action }),
  ...(query.project_id !== undefined && { targetProjectId: query.project_id }),
  ...(query.created_after !== undefined && { createdAfter: query.created_after }),
  ...(query.created_before !== undefined && { createdBefore: query.created_before }),
});

const listAudit = defineRoute({
  method: "get",
  path: "/admin/v1/audit",
  operationId: "listAudit",
  tag,
  summary: "List what operators did, newest first",
  description:
    "A row for each change under `/admin/v1`, each sign-in, and each change or send by an operator under `/api/v1`. It is written before the change is made, so a change that was refused afterwards has a row too. Rows appear within a second.",
  access: viewer,
  query: AuditQuery,
  responses: { 200: { description: "A page of audit rows", schema: keysetPageOf(AuditRow) } },
  handle: async ({ sendRequest }, request) => {
    const { operator, action, project_id, created_after, created_before, ...page } = request.query;
    const filters = filtersOf({ operator, action, project_id, created_after, created_before });
    return pageReply(request, await sendRequest(ListAudit, { page: keysetRequest(page), ...filters }));
  },
});

const exportAudit = defineRoute({
  method: "get",
  path: "/admin/v1/audit/export",
  operationId: "exportAudit",
  tag,
  summary: "Export what operators did, as NDJSON",
  description:
    "One audit row a line, newest first. If Herald cannot read on, it closes the connection without the last chunk.",
  access: viewer,
  query: AuditExportQuery,
  responses: { 200: { description: "Audit rows, one a line", schema: AuditRow, download: ["application/x-ndjson"] } },
  handle: async ({ sendRequest }, { query }) => {
    const read = (after: string) =>
      sendRequest(ListAudit, { page: { after, perPage: exportPage }, ...filtersOf(query) });
    // Read before the response begins, so that a database that is unavailable is a 503.
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
        // The client left or stopped reading, or the rest cannot be read: an end would look like a complete export.
        response.destroy();
      }
    };
    return { ...ok(write), headers: { "content-type": "application/x-ndjson; charset=utf-8" } };
  },
});

const verifyAudit = defineRoute({
  method: "get",
  path: "/admin/v1/audit/verify",
  operationId: "verifyAudit",
  tag,
  summary: "Check the chain of audit rows",
  description:
    "Each row contains the hash of the row before it, sealed with a master key of registry. Finds rows that were changed, forged or removed. Checks up to 10,000 rows and continues with `after`.",
  access: viewer,
  query: VerifyAuditQuery,
  responses: { 200: { description: "The result for these rows", schema: z.object({ data: AuditCheck }) } },
  handle: async ({ sendRequest }, { query }) =>
    ok({ data: await sendRequest(VerifyAudit, { after: Number(query.after ?? 0) }) }),
});

export const auditRoutes = [listAudit, exportAudit, verifyAudit];
