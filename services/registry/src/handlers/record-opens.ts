import { defineBatchHandler } from "@herald/bus";
import { NotificationOpenedV1 } from "@herald/contracts";
import type { Deps } from "../deps.ts";

/** An open shows that the app is still installed. Of all opens of a device in a day, one is written. */
export const recordOpens = ({ devices, now }: Deps) =>
  defineBatchHandler({
    durable: "registry-record-opens", // renaming a durable replays its stream
    message: NotificationOpenedV1,
    // No caller waits, so a batch may grow.
    size: 500,
    waitMs: 250,
    concurrency: 1,
    async handle(deliveries) {
      const latest = now().getTime();
      await devices.opened(
        deliveries.map(({ data: { project_id: projectId, device_id: _id, at } }) => ({
          projectId,
          _id,
          at: new Date(Math.min(Date.parse(at), latest)),
        })),
      );
    },
  });
