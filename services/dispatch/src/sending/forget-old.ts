import { type Logger, type Repeating, repeat } from "@herald/kit";
import type { DeliveryStore } from "../stores/delivery-store.ts";
import type { NotificationStore } from "../stores/notification-store.ts";

type Stores = {
  readonly notifications: Pick<NotificationStore, "oldestKept" | "rowsGone">;
  readonly deliveries: Pick<DeliveryStore, "remove">;
};

type Options = Stores & {
  readonly retentionMs: number;
  readonly everyMs: number;
  readonly now: () => Date;
  readonly log: Logger;
};

/**
 * Removes the rows of notifications that ended longer ago than the retention; their counts stay. One notification after the
 * other rather than an index that expires rows: counts are sums over rows, so those of one that has not ended must stay however
 * old they are. Any number of processes may.
 */
export const keepForgetting = ({ notifications, deliveries, retentionMs, everyMs, now, log }: Options): Repeating =>
  repeat("remove old deliveries", everyMs, log, async (signal) => {
    while (!signal.aborted) {
      const oldest = await notifications.oldestKept(new Date(now().getTime() - retentionMs));
      if (!oldest) return;
      const { _id, projectId } = oldest;
      await deliveries.remove(projectId, _id);
      await notifications.rowsGone(projectId, _id, now());
    }
  });
