import { defineBatchHandler } from "@herald/bus";
import { type DataOf, DeliveryAcceptedV1, DeliveryFailedV1 } from "@herald/contracts";
import { z } from "zod";
import { deliveryContribution } from "../domain/contribution.ts";
import type { ContributionStore } from "../stores/contribution-store.ts";

/** Both events of a settled batch, told apart by what they carry. */
const settled = {
  ...DeliveryAcceptedV1,
  pattern: "push.evt.v1.:projectId.delivery.:outcome",
  schema: z.union([DeliveryAcceptedV1.schema, DeliveryFailedV1.schema]),
  subject: (data: DataOf<typeof DeliveryAcceptedV1> | DataOf<typeof DeliveryFailedV1>) =>
    "devices" in data ? DeliveryAcceptedV1.subject(data) : DeliveryFailedV1.subject(data),
};

/** A batch was settled: what became of its devices counts once. */
export const countDeliveries = (contributions: ContributionStore) =>
  defineBatchHandler({
    durable: "analytics-count-deliveries", // renaming a durable replays its stream
    message: settled,
    // A single send is a batch of its own: they come by the thousand, a few hundred bytes each.
    size: 200,
    // They are folded once a second: what gathers meanwhile is one write, of a broadcast's batches a dozen.
    waitMs: 250,
    concurrency: 2,
    handle: (deliveries) => contributions.put(deliveries.map(({ data }) => deliveryContribution(data))),
  });
