import { publishEvent } from "@herald/bus";
import type { OutboxEvent } from "@herald/contracts";
import type { Resolve } from "@herald/kit";
import { createOutbox } from "@herald/mongo";
import type { Ground } from "@herald/service";
import type { AnalyticsConfig } from "../config.ts";
import { createCheckUrl } from "./check-url.ts";
import { createMakeWebhookMessages } from "./create-messages.ts";
import { createSendMessage } from "./send-message.ts";
import { createPost } from "./webhook-client.ts";
import { answerWebhookMessages } from "./webhook-message-requests.ts";
import { createWebhookMessageStore } from "./webhook-message-store.ts";
import { answerWebhooks } from "./webhook-requests.ts";
import { createWebhookSender } from "./webhook-sender.ts";
import { createWebhookStore, webhookCollection } from "./webhook-store.ts";

/** A receiver whose network takes longer to say hello is not there. */
const connectTimeoutMs = 5_000;
/** Beyond the timeout of a request, for the database to take its outcome. */
const claimMarginMs = 15_000;

/** What a test chooses. */
export type WebhookOverrides = {
  readonly now?: () => Date;
  /** In [0, 1): the jitter of what is tried again. */
  readonly random?: () => number;
  readonly lookEveryMs?: number;
  readonly resolve?: Resolve;
};

/** The part of analytics that tells projects of their events over HTTP. */
export const createWebhooks = (config: AnalyticsConfig, ground: Ground & WebhookOverrides) => {
  const { bus, db, log, now = () => new Date(), random = Math.random, lookEveryMs, resolve } = ground;
  const timeoutMs = config.HERALD_ANALYTICS_WEBHOOKS_TIMEOUT;
  const anyHost = config.HERALD_ANALYTICS_WEBHOOKS_ANY_HOST;

  const webhooks = createWebhookStore(db, config.HERALD_ANALYTICS_MASTER_KEYS);
  const messages = createWebhookMessageStore(db);
  const outbox = createOutbox<OutboxEvent>({
    collections: [{ collection: webhookCollection(db) }],
    publish: (event) => publishEvent(bus, event),
    log,
  });
  const post = createPost({ timeoutMs, connectTimeoutMs, anyHost, resolve });
  const send = createSendMessage({
    webhooks,
    messages,
    post,
    flush: (projectId, _id) => outbox.flush(webhookCollection(db), { _id, projectId }),
    now,
    random,
  });
  const sender = createWebhookSender({
    webhooks,
    messages,
    send,
    claimMs: timeoutMs + claimMarginMs,
    now,
    log,
    ...(lookEveryMs === undefined ? {} : { lookEveryMs }),
  });

  return {
    makeMessages: createMakeWebhookMessages(webhooks, messages, sender, now),
    /** Whose rows go with their project. */
    stores: [webhooks, messages],
    /** Changes what stored messages say. */
    rewrite: messages.rewrite,
    /** What the database must have before anything begins. Repeatable. */
    prepare: async () => {
      for (const store of [webhooks, messages]) await store.ensureIndexes();
      const { moved, missing } = await webhooks.rewrap();
      if (moved > 0) log.info({ moved }, "webhooks' secrets are under the first master key now");
      if (missing.length > 0) log.error({ missing }, "webhooks' secrets are under master keys that are not configured");
    },
    begin: () => {
      const checkUrl = createCheckUrl({ anyHost, resolve });
      const answering = [
        ...answerWebhooks(bus, { webhooks, sender, checkUrl, now }),
        ...answerWebhookMessages(bus, { webhooks, messages, sender, now }),
      ];
      outbox.start();
      sender.start();
      /** Ends it within the deadline; the consumers have stopped before. */
      return async (deadlineMs: number) => {
        await Promise.all(answering.map((each) => each.stop()));
        await sender.stop(deadlineMs);
        post.close();
        await outbox.stop();
      };
    },
  };
};
