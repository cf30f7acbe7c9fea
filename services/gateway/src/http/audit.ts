import { randomUUID } from "node:crypto";
import { type EventData, installation, type OutboxEvent } from "@herald/contracts";
import { currentOwnRequestId } from "@herald/kit";

/** A change that an operator is about to make. */
type AuditedChange = Omit<EventData<"AuditRecordedV1">, "project_id" | "at" | "request_id">;

/** Publishes operators' changes; registry appends them to its audit rows. Resolves when the event is on disk. Throws bus-unavailable. */
export const createAuditPublisher =
  (publish: (event: OutboxEvent<"AuditRecordedV1">) => Promise<void>, now: () => Date) =>
  async (change: AuditedChange): Promise<void> => {
    const at = now();
    const data = {
      project_id: installation,
      ...change,
      request_id: currentOwnRequestId(),
      at: at.toISOString(),
    } as const;
    await publish({ id: randomUUID(), event: "AuditRecordedV1", subject: change.operator.id, at, data });
  };
