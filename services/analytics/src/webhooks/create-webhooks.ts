import { publishEvent } from "@herald/bus";
import type { OutboxEvent } from "@herald/contracts";
import type { Resolve } from "@herald/kit";
import { createOutbox } from "@herald/mongo";
import type { ServiceDeps } from "@herald/service";
import type { AnalyticsConfig } from "../config.ts";
import { createCheckUrl } from "./check-url.ts";
import { createCreateMessages } from "./create-messages.ts";
import { createSendMessage } from "./send-message.ts";
import { createWebhookClient } from "./webhook-client.ts";
import { createWebhookMessageStore } from "./webhook-message-store.ts";
import { handleWebhookRequests } from "./webhook-requests.ts";
import { createWebhookSender } from "./webhook-sender.ts";
import { createWebhookStore, webhookCollection } from "./webhook-store.ts";

const connectTimeoutMs = 5_000;
/** After the timeout of a request, for the database to store its outcome. */
const claimMarginMs = 15_000;

/** What a test may replace. */
export type WebhookOverrides = {
  readonly now?: () => Date;
  /** In [0, 1): the jitter of retries. */
  readonly random?: () => number;
  readonly pollIntervalMs?: number;
  readonly resolve?: Resolve;
};

/** Posts events to the webhooks of projects. */
export const createWebhooks = (config: AnalyticsConfig, ground: ServiceDeps & WebhookOverrides) => {
  const { bus, db, log, now = () => new Date(), random = Math.random, pollIntervalMs, resolve } = ground;
  const timeoutMs = config.HERALD_ANALYTICS_WEBHOOKS_TIMEOUT;
  const anyHost = config.HERALD_ANALYTICS_WEBHOOKS_ANY_HOST;

  const webhooks = createWebhookStore(db, config.HERALD_ANALYTICS_MASTER_KEYS);
  const messages = createWebhookMessageStore(db);
  const collection = webhookCollection(db);
  const outbox = createOutbox<OutboxEvent>({
    collections: [{ collection }],
    publish: (event) => publishEvent(bus, event),
    log,
  });
  const client = createWebhookClient({ timeoutMs, connectTimeoutMs, anyHost, resolve });
  const send = createSendMessage({
    webhooks,
    messages,
    client,
    flush: (projectId, _id) => outbox.flush(collection, { _id, projectId }),
    now,
    random,
  });
  const claimMs = timeoutMs + claimMarginMs;
  const sender = createWebhookSender({ webhooks, messages, send, claimMs, now, log, pollIntervalMs });

  return {
    createMessages: createCreateMessages(webhooks, messages, sender, now),
    stores: [webhooks, messages],
    rewrite: messages.rewrite,
    /** Prepares the database. Repeatable. */
    prepare: async () => {
      for (const store of [webhooks, messages]) await store.ensureIndexes();
      await webhooks.rewrap(log);
    },
    begin: () => {
      const checkUrl = createCheckUrl({ anyHost, resolve });
      const listeners = handleWebhookRequests(bus, { webhooks, messages, sender, checkUrl, now });
      outbox.start();
      sender.start();
      /** Call it when the consumers have stopped. */
      return async (deadlineMs: number) => {
        await Promise.all(listeners.map((each) => each.stop()));
        await sender.stop(deadlineMs);
        client.close();
        await outbox.stop();
      };
    },
  };
};
