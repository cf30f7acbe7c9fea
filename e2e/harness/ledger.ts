import type { Delivery } from "@herald/contracts";

/** Deliveries by their notification and their device. */
export type Ledger = ReadonlyMap<string, Delivery>;

export const deliveryKey = (notificationId: string, deviceId: string): string => `${notificationId} ${deviceId}`;
