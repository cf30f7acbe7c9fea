import { type Bus, publish, schedule } from "@herald/bus";
import { DueV1, type NotificationId, type ProjectId } from "@herald/contracts";
import { batchKey, scheduleSubject } from "../domain/batch-ids.ts";
import type { BatchFacts } from "../stores/delivery-document.ts";

type Row = Pick<BatchFacts, "_id" | "projectId">;
type Scheduled = { readonly _id: NotificationId; readonly projectId: ProjectId };

const dueBatch = ({ _id, projectId }: Row): DueV1 => ({ kind: "batch", projectId, key: batchKey(_id), id: _id });
const dueNotification = ({ _id, projectId }: Scheduled): DueV1 => ({
  kind: "notification",
  projectId,
  key: _id,
  id: _id,
});

/** The messages that start a row of the ledger that waits, or a scheduled notification. Each resolves after the stream's ack. */
export const createDueMessages = (bus: Bus) => {
  const scheduleDue = (data: DueV1, generation: number, at: Date): Promise<void> => {
    const subject = scheduleSubject(data.key, generation);
    // The time is part of the id: the same message for a later time is not a duplicate.
    return schedule(bus, { subject, at, contract: DueV1, data, id: `${data.id}/due/${at.getTime()}` });
  };
  const publishDue = async (data: DueV1, dueAt: Date): Promise<void> => {
    await publish(bus, DueV1, data, { id: `${data.id}/wake/${dueAt.getTime()}` });
  };

  return {
    /** Starts a row at a time. Replaces what was scheduled for it before. */
    scheduleBatch: (row: Row & Pick<BatchFacts, "generation">, at: Date) =>
      scheduleDue(dueBatch(row), row.generation, at),
    /** Starts a notification at a time. Replaces what was scheduled for it before. */
    scheduleNotification: (document: Scheduled, at: Date) => scheduleDue(dueNotification(document), 0, at),
    /** Starts a row now. A repeat for the same `dueAt` is a duplicate. */
    publishBatch: (row: Row, dueAt: Date) => publishDue(dueBatch(row), dueAt),
    /** Starts a notification now. A repeat for the same `dueAt` is a duplicate. */
    publishNotification: (document: Scheduled, dueAt: Date) => publishDue(dueNotification(document), dueAt),
  };
};

export type DueMessages = ReturnType<typeof createDueMessages>;
