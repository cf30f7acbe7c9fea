import { type Delivery, defineBatchHandler } from "@herald/bus";
import { eventTypeOf, headerNames, type MessageContract, ProjectId } from "@herald/contracts";
import { z } from "zod";
import { type HeardEvent, hears, messageFor } from "../domain/webhook-message.ts";
import type { WebhookMessageStore } from "../stores/webhook-message-store.ts";
import type { WebhookStore } from "../stores/webhook-store.ts";
import type { WebhookSender } from "../webhooks/webhook-sender.ts";

const AnyData = z.record(z.string(), z.unknown());

/** Any event, of types too that a later version has: its type is in its subject, and all its fields are kept. */
const anyEvent: MessageContract<typeof AnyData> = {
  name: "AnyEvent",
  pattern: "push.evt.v1.:projectId.:entity.:verb",
  filter: "push.evt.v1.*.*.*",
  schema: AnyData,
  subject: () => {
    throw new TypeError("events are published by their own contracts");
  },
};

const heard = ({ id, subject, data, publishedAt, header }: Delivery<z.output<typeof AnyData>>): HeardEvent[] => {
  const named = eventTypeOf(subject);
  const projectId = ProjectId.safeParse(named?.projectId);
  if (named === undefined || !projectId.success) return [];
  const at = new Date(header(headerNames.ceTime) ?? publishedAt);
  return [
    {
      projectId: projectId.data,
      id,
      type: named.type,
      at: Number.isNaN(at.getTime()) ? publishedAt : at,
      publishedAt,
      data,
    },
  ];
};

/** Something happened: store what each webhook of its project is to get of it, once, and have it sent. */
export const makeWebhookMessages = (
  webhooks: WebhookStore,
  messages: WebhookMessageStore,
  sender: Pick<WebhookSender, "wake">,
  now: () => Date,
) =>
  defineBatchHandler({
    durable: "analytics-make-webhooks", // renaming a durable replays its stream
    message: anyEvent,
    // Every event of every project comes by: one look-up for all the webhooks of a batch keeps that cheap.
    size: 200,
    waitMs: 100, // nobody waits for a webhook at the keyboard, and a broadcast settles a batch every few milliseconds
    concurrency: 2,
    async handle(deliveries) {
      const events = deliveries.flatMap(heard);
      const listeners = await webhooks.ofProjects([...new Set(events.map(({ projectId }) => projectId))]);
      if (listeners.length === 0) return;
      const made = listeners.flatMap((webhook) =>
        events
          .filter((event) => hears(webhook, event))
          .map((event) => ({
            ...messageFor(webhook, event),
            // Kept, so that it can be recovered when the webhook is enabled again.
            ...(webhook.disabled === undefined ? {} : { failure: "the webhook was disabled" }),
          })),
      );
      await messages.put(made, now());
      for (const { _id, projectId } of listeners) sender.wake(projectId, _id);
    },
  });
