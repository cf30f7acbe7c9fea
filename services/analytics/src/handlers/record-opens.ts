import { defineBatchHandler } from "@herald/bus";
import { OpensV1 } from "@herald/contracts";
import type { Open } from "../domain/open.ts";
import type { EmitOpens } from "../emit-opens.ts";
import type { OpenStore } from "../stores/open-store.ts";

/** Devices opened a notification: each counts once, and the bus hears of it. */
export const recordOpens = (opens: OpenStore, emit: EmitOpens) =>
  defineBatchHandler({
    durable: "analytics-record-opens", // renaming a durable replays its stream
    message: OpensV1,
    // Up to 1,000 opens in one insert: past that the database gains nothing.
    size: 10,
    waitMs: 5,
    // Inserts overlap with the publishing of what came before them.
    concurrency: 4,
    async handle(deliveries) {
      const reported = deliveries.flatMap(({ data: { projectId, opens } }) =>
        opens.map(
          (open): Open => ({
            projectId,
            notificationId: open.notificationId,
            deviceId: open.deviceId,
            openedAt: new Date(open.openedAt),
          }),
        ),
      );
      await emit(await opens.record(reported));
    },
  });
