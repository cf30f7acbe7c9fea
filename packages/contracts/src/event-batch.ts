import { z } from "zod";
import { type EventContract, events } from "./events.ts";

/** The content type of a message with several events: the JSON batch format of CloudEvents. An event alone is in binary mode. */
export const eventBatchType = "application/cloudevents-batch+json";

/** An event in a message that has several: its attributes, which are headers in binary mode, and its data. */
export const BatchedEvent = z.object({
  specversion: z.literal("1.0"),
  id: z.string(),
  source: z.string(),
  type: z.string(),
  time: z.iso.datetime(),
  subject: z.string(),
  requestid: z.string().optional(),
  traceparent: z.string().optional(),
  data: z.record(z.string(), z.unknown()),
});
export type BatchedEvent = z.infer<typeof BatchedEvent>;

/**
 * Types whose events of a project and the same moment share a message. Failures, opens and deletions are always alone, so that their
 * consumers need not know batches.
 */
export const batchedTypes: ReadonlySet<string> = new Set(
  (
    [
      events.NotificationAcceptedV1,
      events.NotificationCompletedV1,
      events.NotificationCancelledV1,
      events.NotificationExpiredV1,
      events.DeliveryAcceptedV1,
      events.DeviceRegisteredV1,
      events.DeviceUpdatedV1,
      events.DeviceSubscribedV1,
      events.DeviceUnsubscribedV1,
    ] as readonly Pick<EventContract, "ceType">[]
  ).map(({ ceType }) => ceType),
);
