import type { IncomingMessage } from "node:http";
import {
  AuditCheck,
  AuditExportQuery,
  AuditQuery,
  AuditRow,
  auditRequests,
  keysetPageOf,
  VerifyAuditQuery,
} from "@herald/contracts";
import type { FairGate } from "@herald/kit";
import type { z } from "zod";
import { type ActingOperator, auditReader, viewer } from "../auth/caller.ts";
import { keysetRequest, ok, pageReply } from "../http/reply.ts";
import { dataOf, defineRoute } from "../http/route.ts";
import { rowFormat } from "../streams/export-streams.ts";

/** Rows of one page of an export. */
const exportPage = 100;

/** Runs a request that reads many rows when it is its operator's turn. Throws rate-limited if too many of the operator wait. */
const inTurn = async <Result>(
  gate: FairGate,
  { id }: ActingOperator,
  { socket }: IncomingMessage,
  work: () => Promise<Result>,
): Promise<Result> => {
  const leave = await gate.enter(id, 1, { isGone: () => socket.destroyed });
  return work().finally(leave);
};

const filtersOf = (query: z.output<typeof AuditExportQuery>) => ({
  operator: query.operator,
  action: query.action,
  targetProjectId: query.project_id,
  createdAfter: query.created_after,
  createdBefore: query.created_before,
});

export const auditRoutes = [
  defineRoute("listAudit", "get /admin/v1/audit", {
    summary: "List audit rows, newest first",
    description:
      "A row for each change under `/admin/v1`, each sign-in, and each change or send by an operator under `/api/v1`. It is written before the change is made, so a change that was refused afterwards has a row too. Rows appear within a second. A `member` needs `project_id` and its grant `admin`.",
    access: auditReader,
    query: AuditQuery,
    responses: { 200: { description: "A page of audit rows", schema: keysetPageOf(AuditRow) } },
    errors: ["project-not-found"],
    handle: async ({ sendRequest }, { query }) =>
      pageReply(await sendRequest(auditRequests.list, { page: keysetRequest(query), ...filtersOf(query) })),
  }),
  defineRoute("exportAudit", "get /admin/v1/audit/export", {
    summary: "Export audit rows as NDJSON",
    description:
      "One audit row a line, newest first. If reading fails, Herald closes the connection without the last chunk. An operator has as many exports at a time as a project.",
    access: auditReader,
    query: AuditExportQuery,
    responses: { 200: { description: "Audit rows, one a line", schema: AuditRow, download: ["application/x-ndjson"] } },
    errors: ["project-not-found"],
    handle: async ({ sendRequest, exportStreams, auditGate }, { query, caller: { operator }, message, recheck }) => {
      const format = rowFormat("ndjson", AuditRow);
      const read = (after = "", limit: number) =>
        inTurn(auditGate, operator, message, async () => {
          const page = { after, perPage: Math.min(limit, exportPage) };
          const { data, next } = await sendRequest(auditRequests.list, { page, ...filtersOf(query) });
          return { rows: data.map((row) => JSON.stringify(row)), next };
        });
      const request = { owner: operator.id, format, gzip: false, after: undefined, read, recheck };
      const body = await exportStreams.open(request);
      return { status: 200 as const, body, headers: { "content-type": format.contentType } };
    },
  }),
  defineRoute("verifyAudit", "get /admin/v1/audit/verify", {
    summary: "Check the chain of audit rows",
    description:
      "Each row contains the hash of the row before it, sealed with a master key of registry. Finds rows that were changed, forged or removed. Checks up to 10,000 rows, or for a second, and continues with `after`. Herald runs one check at a time; operators take turns.",
    access: viewer,
    query: VerifyAuditQuery,
    responses: { 200: { description: "The result for these rows", schema: dataOf(AuditCheck) } },
    handle: async ({ sendRequest, auditGate }, { query, caller: { operator }, message }) => {
      const after = Number(query.after ?? 0);
      return ok(await inTurn(auditGate, operator, message, () => sendRequest(auditRequests.verify, { after })));
    },
  }),
];
