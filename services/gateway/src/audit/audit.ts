import { randomUUID } from "node:crypto";
import { type EventData, installation, type OutboxEvent } from "@herald/contracts";
import { currentRequestId } from "@herald/kit";

/** What an operator is about to do. */
export type AuditedChange = Omit<EventData<"AuditRecordedV1">, "project_id" | "at" | "request_id">;

export type Audit = {
  /** Resolves when the event is on disk. Throws bus-unavailable. */
  readonly record: (change: AuditedChange) => Promise<void>;
};

/** Records what operators do as events, which registry appends to its audit rows. */
export const createAudit = (
  publish: (event: OutboxEvent<"AuditRecordedV1">) => Promise<void>,
  now: () => Date,
): Audit => ({
  record: async (change) => {
    const at = now();
    const requestId = currentRequestId();
    await publish({
      id: randomUUID(),
      event: "AuditRecordedV1",
      subject: change.operator.id,
      at,
      data: {
        project_id: installation,
        ...change,
        ...(requestId !== undefined && { request_id: requestId }),
        at: at.toISOString(),
      },
    });
  },
});
