import { type MessageDelivery, publishEvent } from "@herald/bus";
import { eventTypeOf, headerNames, type OutboxEvent, type ProjectId } from "@herald/contracts";
import { createOutboundProxy, type Resolve } from "@herald/kit";
import { createOutbox } from "@herald/mongo";
import type { ServiceDeps } from "@herald/service";
import type { AnalyticsConfig } from "../config.ts";
import { createCheckUrl, createWebhookClient } from "./webhook-client.ts";
import { isSubscribed, newWebhookMessage, type ReceivedEvent } from "./webhook-message.ts";
import { createWebhookMessageStore } from "./webhook-message-store.ts";
import { handleWebhookRequests } from "./webhook-requests.ts";
import { createWebhookSender } from "./webhook-sender.ts";
import { createWebhookStore, type WebhookDocument, webhookCollection } from "./webhook-store.ts";

type AnyEvent = MessageDelivery<Readonly<Record<string, unknown>>>;

const receivedEvent = (event: AnyEvent, projectId: ProjectId): ReceivedEvent => {
  const { id, subject, data, publishedAt, header } = event;
  const at = new Date(header(headerNames.ceTime) ?? publishedAt);
  const type = eventTypeOf(subject)?.type ?? "";
  return { projectId, id, type, at: Number.isNaN(at.getTime()) ? publishedAt : at, publishedAt, data };
};

/** Timeout of a webhook request. Standard Webhooks recommends 15 to 30 seconds. */
const requestTimeoutMs = 20_000;
const connectTimeoutMs = 5_000;
/** Time for the database to store the outcome after a request's timeout. */
const claimMarginMs = 15_000;
/** A stop aborts requests that take longer. They are sent again later. */
const stopMs = 5_000;

/** What a test may replace. */
export type WebhookOverrides = {
  readonly now?: () => Date;
  /** In [0, 1): the jitter of retries. */
  readonly random?: () => number;
  readonly timeoutMs?: number;
  readonly pollIntervalMs?: number;
  readonly resolve?: Resolve;
};

/** Posts events to the webhooks of projects. */
export const createWebhookSending = (config: AnalyticsConfig, deps: ServiceDeps & WebhookOverrides) => {
  const {
    bus,
    db,
    log,
    now = () => new Date(),
    random = Math.random,
    timeoutMs = requestTimeoutMs,
    pollIntervalMs,
    resolve,
  } = deps;
  const anyHost = config.HERALD_ANALYTICS_WEBHOOKS_ANY_HOST;

  const webhooks = createWebhookStore(db, config.HERALD_ANALYTICS_MASTER_KEYS);
  const messages = createWebhookMessageStore(db);
  const collection = webhookCollection(db);
  const outbox = createOutbox<OutboxEvent>({
    collections: [{ collection }],
    publish: (event) => publishEvent(bus, event),
    log,
  });
  const proxy = createOutboundProxy(config);
  const client = createWebhookClient({ timeoutMs, connectTimeoutMs, anyHost, resolve, proxy });
  const sender = createWebhookSender({
    webhooks,
    messages,
    client,
    flush: (projectId, _id) => outbox.flush(collection, { _id, projectId }),
    claimMs: timeoutMs + claimMarginMs,
    now,
    random,
    log,
    pollIntervalMs,
  });

  /** Stores one message for each event and subscribed webhook, and starts to send it. */
  const createMessages = async (found: readonly WebhookDocument[], events: readonly AnyEvent[]): Promise<void> => {
    const byProject = Map.groupBy(events, ({ subject }) => eventTypeOf(subject)?.projectId);
    const created = found.flatMap((webhook) =>
      (byProject.get(webhook.projectId) ?? [])
        .map((event) => receivedEvent(event, webhook.projectId))
        .filter((event) => isSubscribed(webhook, event))
        .map((event) => ({
          ...newWebhookMessage(webhook, event),
          // The message is stored, so that it can be recovered when the webhook is enabled again.
          ...(webhook.disabled && { failure: "the webhook was disabled" }),
        })),
    );
    await messages.put(created, now());
    for (const { _id, projectId } of found) sender.sendNow(projectId, _id);
  };

  return {
    ofProjects: webhooks.ofProjects,
    createMessages,
    stores: [webhooks, messages],
    rewrite: messages.rewrite,
    /** Prepares the database. Repeatable. */
    prepare: async () => {
      for (const store of [webhooks, messages]) await store.ensureIndexes();
      await webhooks.rewrap(log);
    },
    handleRequests: () => {
      const checkUrl = createCheckUrl({ anyHost, resolve });
      return handleWebhookRequests(bus, { webhooks, messages, sender, checkUrl, now });
    },
    /** Stop it when the consumers have stopped. */
    startSending: () => {
      outbox.start();
      sender.start();
      return {
        stop: async () => {
          await sender.stop(stopMs);
          client.close();
          await outbox.stop();
        },
      };
    },
  };
};

export type WebhookSending = ReturnType<typeof createWebhookSending>;
