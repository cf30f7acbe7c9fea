import { handleRequest, type RequestListener } from "@herald/bus";
import { ReadRecipients, RecordRecipients } from "@herald/contracts";
import type { DeliveryDeps } from "../delivery/create-delivery.ts";

/** Requests of registry, which expands a notification's recipients page after page. */
export const handleRecipientRequests = ({ bus, notifications, recipients }: DeliveryDeps): RequestListener[] => [
  handleRequest(bus, ReadRecipients, async ({ projectId, notificationId, page }) => {
    const state = await notifications.getState(projectId, notificationId);
    if (!state || state.end) return { state: "ended" as const };
    const found = await recipients.read(projectId, notificationId, page);
    return found ? { state: "stored" as const, ...found } : { state: "waiting" as const };
  }),

  handleRequest(bus, RecordRecipients, async ({ projectId, notificationId, page, unmatched }) => {
    await recipients.record(projectId, notificationId, page, unmatched);
    return {};
  }),
];
