import { handleRequest, type RequestListener } from "@herald/bus";
import { deliveryRequests, replayRequests } from "@herald/contracts";
import type { Deps } from "../deps.ts";
import type { BatchFacts, DeliveryDocument } from "../stores/delivery-document.ts";
import type { NotificationState } from "../stores/notification-document.ts";
import { type FindNotification, type RecentSums, unstoredView, viewOf } from "./notifications.ts";

type DeliveryRequestDeps = Pick<
  Deps,
  "bus" | "exportDeliveries" | "list" | "now" | "timeline" | "trace" | "usersOf"
> & { readonly find: FindNotification; readonly sumsOf: RecentSums };

/** Requests for deliveries: lists, exports and traces of single devices. */
export const handleDeliveryRequests = (deps: DeliveryRequestDeps): RequestListener[] => {
  const { bus, find, list, exportDeliveries, trace, timeline, usersOf, sumsOf, now } = deps;
  return [
    handleRequest(bus, deliveryRequests.list, async ({ projectId, notificationId, status, page }) => {
      await find(projectId, notificationId);
      return list({ projectId, notificationId, status }, page);
    }),

    handleRequest(bus, deliveryRequests.ofDevice, ({ projectId, deviceId, page }) =>
      timeline(projectId, deviceId, page),
    ),

    handleRequest(bus, deliveryRequests.export, async ({ after, limit, ...wanted }) => {
      if (wanted.notificationId) await find(wanted.projectId, wanted.notificationId);
      const { rows, next } = await exportDeliveries(wanted, after, limit);
      return { rows: rows.map((row) => JSON.stringify(row)), next };
    }),

    handleRequest(bus, deliveryRequests.users, ({ projectId, deliveries, buttonsOf }) =>
      usersOf(projectId, deliveries, buttonsOf),
    ),

    handleRequest(bus, deliveryRequests.trace, async ({ projectId, notificationId, deviceId }) => {
      const found = await find(projectId, notificationId);
      if ("send" in found) return { notification: unstoredView(found.send, now()), expanded: false, attempts: [] };
      const { document } = found;
      const { delivery, attempts, nextAttemptAt } = await trace(projectId, notificationId, deviceId);
      return {
        notification: await viewOf(document, sumsOf),
        expanded: isExpanded(document),
        ...(delivery && { delivery }),
        attempts: [...attempts],
        ...(nextAttemptAt && { nextAttemptAt: nextAttemptAt.toISOString() }),
      };
    }),
  ];
};

/** Whether every device that it is for is in a row. */
const isExpanded = ({ expanded, end, step }: NotificationState): boolean =>
  end !== undefined || (expanded !== undefined && (step === "delivering" || step === "sending"));

type Row = BatchFacts & Pick<DeliveryDocument, "state">;

type ReplayDeps = Pick<Deps, "bus" | "deliveries" | "notifications">;

/**
 * Whether a replay of a dead message can have an effect. Devices that became final when it died stay final: their events are
 * published, and the sender may have sent another notification since.
 */
export const handleReplayRequests = ({ bus, notifications, deliveries }: ReplayDeps): RequestListener[] => [
  handleRequest(bus, replayRequests.check, async ({ projectId, notificationId, message, batchId }) => {
    const document = await notifications.getState(projectId, notificationId);
    const row = batchId === undefined ? null : await deliveries.read(projectId, batchId);
    const settled = why[message](document, row, batchId);
    return settled === undefined ? {} : { settled };
  }),
];

type Why = (document: NotificationState | null, row: Row | null, batchId?: string) => string | undefined;

const ended: Why = (document) => {
  if (document?.end) return `the notification ${document._id} is final: ${document.status}`;
  return document?.stop?.kind === "abandoned"
    ? `the notification ${document._id} was given up, and its devices are counted as failed`
    : undefined;
};

const missing = "its notification does not exist";

/** Why a replay has no effect; undefined when it has one. */
const why: Record<"SendV1" | "DeliverBatchV1" | "DueV1", Why> = {
  SendV1: ended,
  DeliverBatchV1: (document, row) => {
    if (row) return rowSettled(row) ?? `the batch ${row._id} is delivered without it`;
    if (!document) return missing;
    // After a lost expansion, batches that arrive after the end are added to the counts.
    return document.end && !document.expanded?.lost ? ended(document, row) : undefined;
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
