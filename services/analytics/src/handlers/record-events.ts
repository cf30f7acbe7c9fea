import { defineBatchHandler } from "@herald/bus";
import {
  anyEvent,
  type DataOf,
  DeliveryAcceptedV1,
  DeliveryFailedV1,
  eventTypeOf,
  type MessageContract,
  NotificationAcceptedV1,
  NotificationChangedV1,
  type ProjectId,
} from "@herald/contracts";
import { deliveryDelta, type SettledData } from "../domain/stats-delta.ts";
import type { StoreDeltas } from "../jobs/aggregate-stats.ts";
import { type NotificationFactsStore, notificationFactsOf } from "../stores/notification-facts-store.ts";
import type { WebhookSending } from "../webhooks/create-webhooks.ts";

/** The events that statistics always need. */
const counted: ReadonlyMap<string, Pick<MessageContract, "schema" | "isPlain">> = new Map([
  [DeliveryAcceptedV1.ceType, DeliveryAcceptedV1 as MessageContract],
  [DeliveryFailedV1.ceType, DeliveryFailedV1 as MessageContract],
  [NotificationAcceptedV1.ceType, NotificationAcceptedV1 as MessageContract],
  [NotificationChangedV1.ceType, NotificationChangedV1 as MessageContract],
]);

/**
 * Counts deliveries, stores notification facts and creates webhook messages. One consumer for all three, because receiving and
 * acking an event costs more than each of them.
 */
export const recordEvents = (
  storeDeltas: StoreDeltas,
  notificationFacts: NotificationFactsStore,
  webhooks: Pick<WebhookSending, "ofProjects" | "createMessages">,
) =>
  defineBatchHandler({
    durable: "analytics-events", // renaming a durable replays its stream
    message: anyEvent,
    contractOf: (subject) => counted.get(eventTypeOf(subject)?.type ?? ""),
    // A single send has three events of a few hundred bytes: large batches save commands.
    size: 1_000,
    waitMs: 200, // statistics are aggregated once a second anyway
    concurrency: 2,
    async handle(events) {
      const projectIds = new Set<ProjectId>();
      const settled: SettledData[] = [];
      const accepted: DataOf<typeof NotificationAcceptedV1>[] = [];
      const changed: DataOf<typeof NotificationChangedV1>[] = [];
      for (const [subject, own] of Map.groupBy(events, (event) => event.subject)) {
        const { projectId, type } = eventTypeOf(subject) ?? {};
        if (projectId === undefined || type === undefined) continue;
        projectIds.add(projectId as ProjectId);
        if (!counted.has(type)) continue;
        const data = own.map((event) => event.data);
        if (type === NotificationAcceptedV1.ceType) accepted.push(...(data as DataOf<typeof NotificationAcceptedV1>[]));
        else if (type === NotificationChangedV1.ceType)
          changed.push(...(data as DataOf<typeof NotificationChangedV1>[]));
        else settled.push(...(data as SettledData[]));
      }
      const withFacts = accepted.filter(({ topics, users, send_at }) => topics || users || send_at);
      const createWebhookMessages = async () => {
        const subscribers = await webhooks.ofProjects([...projectIds]);
        if (subscribers.length > 0) await webhooks.createMessages(subscribers, events);
      };
      await Promise.all([
        storeDeltas(settled.map(deliveryDelta)),
        withFacts.length > 0 && notificationFacts.put(withFacts.map(notificationFactsOf)),
        createWebhookMessages(),
      ]);
      if (changed.length > 0) await notificationFacts.reschedule(changed);
    },
  });
