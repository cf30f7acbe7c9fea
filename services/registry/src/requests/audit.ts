import { handleRequest, type RequestListener } from "@herald/bus";
import { type AuditRow, ListAudit, VerifyAudit } from "@herald/contracts";
import type { Deps } from "../deps.ts";
import type { AuditDocument } from "../domain/audit-chain.ts";

const stateOf = (text: string | undefined) => (text === undefined ? undefined : JSON.parse(text));

const auditView = (row: AuditDocument): AuditRow => ({
  sequence: row._id,
  event_id: row.eventId,
  operator: row.operator,
  action: row.action,
  ...(row.targetProjectId && { project_id: row.targetProjectId }),
  target: row.target,
  address: row.address,
  ...(row.requestId && { request_id: row.requestId }),
  ...(row.before !== undefined && { before: stateOf(row.before) }),
  ...(row.after !== undefined && { after: stateOf(row.after) }),
  at: row.at.toISOString(),
  previous_hash: row.previousHash,
  hash: row.hash,
});

export const handleAuditRequests = ({ bus, audit }: Deps): RequestListener[] => [
  handleRequest(bus, ListAudit, async (request) => {
    const { data, next } = await audit.list(request);
    return { data: data.map(auditView), next };
  }),
  handleRequest(bus, VerifyAudit, ({ after }) => audit.check(after)),
];
