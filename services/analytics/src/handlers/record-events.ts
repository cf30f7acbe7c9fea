import { defineBatchHandler } from "@herald/bus";
import {
  type DataOf,
  DeliveryAcceptedV1,
  DeliveryFailedV1,
  eventTypeOf,
  isObject,
  type MessageContract,
  NotificationAcceptedV1,
} from "@herald/contracts";
import { z } from "zod";
import { noticeOf } from "../domain/notification-facts.ts";
import { deliveryContribution } from "../domain/stats-delta.ts";
import type { CountContributions } from "../jobs/aggregate-stats.ts";
import type { NoticeStore } from "../stores/notification-facts-store.ts";
import type { MakeWebhookMessages } from "../webhooks/create-messages.ts";

const AnyData = z.record(z.string(), z.unknown());

/** Any event, of types too that a later version has: its type is in its subject, and all its fields are kept. */
const anyEvent: MessageContract<typeof AnyData> = {
  name: "AnyEvent",
  pattern: "push.evt.v1.:project_id.:entity.:verb",
  filter: "push.evt.v1.*.*.*",
  schema: AnyData,
  isPlain: isObject,
  subject: () => {
    throw new TypeError("events are published by their own contracts");
  },
};

/** What statistics count. */
const counted: ReadonlyMap<string, Pick<MessageContract, "schema" | "isPlain">> = new Map([
  [DeliveryAcceptedV1.ceType, DeliveryAcceptedV1 as MessageContract],
  [DeliveryFailedV1.ceType, DeliveryFailedV1 as MessageContract],
  [NotificationAcceptedV1.ceType, NotificationAcceptedV1 as MessageContract],
]);

type SettledData = DataOf<typeof DeliveryAcceptedV1> | DataOf<typeof DeliveryFailedV1>;

/**
 * Everything that happens comes by here once: what devices received or missed is counted, notifications are noted, and webhooks get
 * their messages. One consumer for all three, because on a busy system receiving and acking an event costs more than what is done with it.
 */
export const recordEvents = (
  count: CountContributions,
  notices: NoticeStore,
  makeWebhookMessages: MakeWebhookMessages,
) =>
  defineBatchHandler({
    durable: "analytics-events", // renaming a durable replays its stream
    message: anyEvent,
    contractOf: (subject) => counted.get(eventTypeOf(subject)?.type ?? ""),
    // A single send has three, a few hundred bytes each: they come by the thousand, and each write takes what has come.
    size: 500,
    waitMs: 100, // nobody waits for them at the keyboard, and statistics are folded once a second
    concurrency: 2,
    async handle(events) {
      const settled: SettledData[] = [];
      const accepted: DataOf<typeof NotificationAcceptedV1>[] = [];
      for (const { subject, data } of events) {
        const type = eventTypeOf(subject)?.type;
        if (type === NotificationAcceptedV1.ceType) accepted.push(data as DataOf<typeof NotificationAcceptedV1>);
        else if (type !== undefined && counted.has(type)) settled.push(data as SettledData);
      }
      await Promise.all([
        count(settled.map(deliveryContribution)),
        notices.put(accepted.flatMap((data) => noticeOf(data) ?? [])),
        makeWebhookMessages(events),
      ]);
    },
  });
