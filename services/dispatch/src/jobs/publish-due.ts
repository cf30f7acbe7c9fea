import { type Bus, publish } from "@herald/bus";
import { DueV1 } from "@herald/contracts";

/** Wakes a stored batch or notification now. `dueAt` tells this wake-up from others of the same row. */
export type PublishDue = (data: DueV1, dueAt: Date) => Promise<void>;

export const createPublishDue =
  (bus: Bus): PublishDue =>
  async (data, dueAt) => {
    await publish(bus, DueV1, data, { id: `${data.id}/wake/${dueAt.getTime()}` });
  };
