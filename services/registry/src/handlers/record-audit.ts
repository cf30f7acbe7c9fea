import { defineHandler } from "@herald/bus";
import { AuditRecordedV1 } from "@herald/contracts";
import type { Logger } from "@herald/kit";
import type { AuditStore } from "../stores/audit-store.ts";

const text = (state: unknown): string | undefined => (state === undefined ? undefined : JSON.stringify(state));

/** Appends what operators do to the chain of audit rows. One at a time, because each row has the hash of the row before. */
export const recordAudit = (audit: AuditStore, log: Logger) =>
  defineHandler({
    durable: "registry-record-audit", // renaming a durable replays its stream
    message: AuditRecordedV1,
    concurrency: 1,
    async handle({ id, data }) {
      const [before, after] = [text(data.before), text(data.after)];
      const row = await audit.append({
        eventId: id,
        operator: data.operator,
        action: data.action,
        ...(data.target_project_id !== undefined && { targetProjectId: data.target_project_id }),
        target: data.target,
        address: data.address,
        ...(data.request_id !== undefined && { requestId: data.request_id }),
        ...(before !== undefined && { before }),
        ...(after !== undefined && { after }),
        at: new Date(data.at),
      });
      // Logs are kept elsewhere: with the hash, a chain that was written again from some row on is found.
      if (row) log.info({ sequence: row._id, hash: row.hash, action: row.action }, "audit row recorded");
    },
  });
