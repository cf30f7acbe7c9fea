import { type Bus, handleRequest, type RequestListener } from "@herald/bus";
import { JudgeReplay } from "@herald/contracts";
import type { BatchFacts, DeliveryDocument } from "../stores/delivery-document.ts";
import type { DeliveryStore } from "../stores/delivery-store.ts";
import type { NotificationState } from "../stores/notification-document.ts";
import type { NotificationStore } from "../stores/notification-store.ts";

type Row = BatchFacts & Pick<DeliveryDocument, "state">;

/**
 * Whether a dead message can do something if it comes again. What was made final when it died stays so: its events are out, and
 * its sender may have sent something else since.
 */
export const handleReplayRequests = ({
  bus,
  notifications,
  deliveries,
}: {
  bus: Bus;
  notifications: Pick<NotificationStore, "getState">;
  deliveries: Pick<DeliveryStore, "read">;
}): RequestListener[] => [
  handleRequest(bus, JudgeReplay, async ({ projectId, notificationId, message, batchId }) => {
    const document = await notifications.getState(projectId, notificationId);
    const row = batchId === undefined ? null : await deliveries.read(projectId, batchId);
    const settled = why[message](document, row, batchId);
    return settled === undefined ? {} : { settled };
  }),
];

type Why = (document: NotificationState | null, row: Row | null, batchId?: string) => string | undefined;

const ended: Why = (document) => {
  if (document?.final) return `the notification ${document._id} is final: ${document.final.status}`;
  return document?.abandonedAt
    ? `the notification ${document._id} was given up, and its devices are counted as failed`
    : undefined;
};

const missing = "its notification does not exist";

/** Why it can do nothing any more; undefined when it can. */
const why: Record<"SendV1" | "DeliverBatchV1" | "DueV1", Why> = {
  SendV1: ended,
  DeliverBatchV1: (document, row) => {
    if (row) return rowSettled(row) ?? `the batch ${row._id} goes on without it`;
    if (!document) return missing;
    // Where an expansion was lost, what comes after the end is added to the counts.
    return document.final && !document.expansionLostAt ? ended(document, row) : undefined;
  },
  DueV1: (document, row, batchId) => {
    if (!document) return missing;
    if (batchId === undefined) return ended(document, row);
    if (!row) return `the batch ${batchId} does not exist`;
    return row.state === "waiting" ? undefined : (rowSettled(row) ?? `the batch ${row._id} is being sent`);
  },
};

const rowSettled = ({ _id, state }: Row): string | undefined =>
  state === "final" || state === "settled" ? `the devices of the batch ${_id} are final` : undefined;
