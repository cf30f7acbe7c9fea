import { defineBatchHandler, handleRequest, type RequestListener } from "@herald/bus";
import { AuditRecordedV1, type AuditRow, ListAudit, VerifyAudit } from "@herald/contracts";
import type { Logger } from "@herald/kit";
import { mapPage } from "@herald/mongo";
import type { Deps } from "../deps.ts";
import type { AuditDocument } from "../domain/audit-chain.ts";
import type { AuditStore } from "../stores/audit-store.ts";

/** Appends the actions of operators to the chain of audit rows. One batch at a time, because each row has the hash of the row before. */
export const recordAudit = (audit: AuditStore, log: Logger) =>
  defineBatchHandler({
    durable: "registry-record-audit", // renaming a durable replays its stream
    message: AuditRecordedV1,
    // A batch costs four commands, like a single row, so that no operator's flood delays the rows of others.
    size: 500,
    waitMs: 50, // of the second within which a row appears
    concurrency: 1,
    async handle(deliveries) {
      const appended = await audit.append(
        deliveries.map(({ id, data }) => ({
          eventId: id,
          operator: data.operator,
          action: data.action,
          targetProjectId: data.target_project_id,
          target: data.target,
          address: data.address,
          requestId: data.request_id,
          before: JSON.stringify(data.before),
          after: JSON.stringify(data.after),
          at: new Date(data.at),
        })),
      );
      // Logs are stored elsewhere: the logged hashes reveal a chain that was rewritten from some row on.
      for (const row of appended)
        log.info({ sequence: row._id, hash: row.hash, action: row.action }, "audit row recorded");
    },
  });

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
  handleRequest(bus, ListAudit, async (request) => mapPage(await audit.list(request), auditView)),
  handleRequest(bus, VerifyAudit, ({ after }) => audit.check(after)),
];
