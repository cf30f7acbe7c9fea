import { type Answering, answer, type Bus } from "@herald/bus";
import { ListDeliveries } from "@herald/contracts";
import type { DeliveryList } from "../stores/delivery-list.ts";
import type { FindNotification } from "./find-notification.ts";

/** The ledger of a notification, one row per device. */
export const answerDeliveries = ({
  bus,
  find,
  list,
}: {
  bus: Bus;
  find: FindNotification;
  list: DeliveryList["list"];
}): Answering[] => [
  answer(bus, ListDeliveries, async ({ projectId, notificationId, status, page }) => {
    await find(projectId, notificationId);
    return list({ projectId, notificationId, status }, page);
  }),
];
