import { type RetentionRule, retentionBatch } from "@herald/mongo";
import type { DeliveryStore } from "../stores/delivery-store.ts";
import type { NotificationStore } from "../stores/notification-store.ts";

type Stores = {
  readonly notifications: Pick<NotificationStore, "endedBefore" | "removeAll">;
  readonly deliveries: Pick<DeliveryStore, "removeBatch">;
};

/** Most have one row or a few, so that a batch of rows is that of about so many. */
const notificationsAtATime = 200;

/**
 * Notifications and their deliveries go together, counted from the notification's end: counts are sums over rows, so those of one
 * that has not ended stay however old they are. The rows go first: a crash in between leaves a notification that is found again.
 */
export const retentionRules = ({ notifications, deliveries }: Stores, keepMs: number): RetentionRule[] => [
  {
    name: "notifications",
    keepMs,
    removeBatch: async (before) => {
      const ended = await notifications.endedBefore(before, notificationsAtATime);
      if (ended.length === 0) return { removed: 0, more: false };
      const removed = await deliveries.removeBatch(ended);
      if (removed === retentionBatch) return { removed, more: true };
      await notifications.removeAll(ended);
      return { removed: removed + ended.length, more: ended.length === notificationsAtATime };
    },
  },
];
