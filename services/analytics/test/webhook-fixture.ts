import { type Bus, closeBus, connectBus, ensureStreams, publishEvent, publishEvents, sendRequest } from "@herald/bus";
import { busUsers } from "@herald/bus/permissions";
import {
  type EventData,
  type EventName,
  newNotificationId,
  newProjectId,
  newTopicId,
  newWebhookId,
  type OutboxEvent,
  type ProjectId,
  type Webhook,
  type WebhookId,
  type WebhookMessage,
  type WebhookMessageDetail,
  type WebhookMessageId,
  type WebhookMessageStatus,
  webhookMessageRequests,
  webhookRequests,
} from "@herald/contracts";
import { readConfig } from "@herald/kit";
import { freshDatabase, startBroker, eventually as usually } from "@herald/testing";
import { createApp } from "../src/app.ts";
import { AnalyticsConfig } from "../src/config.ts";
import type { WebhookOverrides } from "../src/webhooks/create-webhooks.ts";
import { environmentOf, log } from "./analytics-fixture.ts";

export type Hook = { readonly projectId: ProjectId; readonly id: WebhookId; readonly secret: string };

/** Waits longer than usual: one step goes through broker, database, receiver and database again. */
export const eventually = <T>(check: () => T | Promise<T>): Promise<T> => usually(check, { timeoutMs: 30_000 });

/** Short, so that tests need not wait for retries. */
const shortPollMs = 50;
/** As long as a test waits: a request that ended before its answer would be sent again, and posted twice. */
const longTimeoutMs = 60_000;

/** Analytics with its own broker and database, and a clock that a test can put forward. */
export const startWebhookTest = async (
  environment: Readonly<Record<string, string>> = {},
  overrides: Pick<WebhookOverrides, "resolve"> = {},
) => {
  const [broker, database] = await Promise.all([startBroker(), freshDatabase({ service: "analytics" })]);
  const bus: Bus = await connectBus({ url: broker.url, name: "test", inboxPrefix: busUsers.gateway.inboxPrefix, log });
  await ensureStreams(bus, { replicas: 1, sizeFactor: 0.01 });
  let ahead = 0;
  const now = () => new Date(Date.now() + ahead);
  const newApp = (
    changed: Readonly<Record<string, string>> = {},
    { timeoutMs = longTimeoutMs, pollIntervalMs = shortPollMs } = {},
  ) =>
    createApp(
      readConfig(AnalyticsConfig, { ...environmentOf(broker, database.url, database), ...environment, ...changed }),
      {
        now,
        random: () => 0,
        timeoutMs,
        pollIntervalMs,
        ...overrides,
      },
    );
  let app = newApp();
  const ready = async () => {
    const unknown = { projectId: newProjectId(now()), webhookId: newWebhookId(now()) };
    // The error for an unknown webhook shows that requests are handled.
    await eventually(() =>
      sendRequest(bus, webhookRequests.get, unknown).catch((error) => {
        if (error.code !== "webhook-not-found") throw error;
      }),
    );
  };
  await app.start();
  await ready();

  const hook = async (
    url: string,
    { projectId = newProjectId(now()), events }: { projectId?: ProjectId; events?: string[] } = {},
  ): Promise<Hook> => {
    const id = newWebhookId(now());
    const settings = { url, ...(events === undefined ? {} : { events }) };
    const { secret } = await sendRequest(bus, webhookRequests.create, { projectId, webhookId: id, settings });
    return { projectId, id, secret };
  };
  const read = ({ projectId, id }: Hook): Promise<Webhook> =>
    sendRequest(bus, webhookRequests.get, { projectId, webhookId: id });
  const messages = async ({ projectId, id }: Hook, status?: WebhookMessageStatus): Promise<WebhookMessage[]> => {
    const page = { by: "page", page: 1, perPage: 100 } as const;
    const wanted = { projectId, webhookId: id, ...(status === undefined ? {} : { status }), page };
    return (await sendRequest(bus, webhookMessageRequests.list, wanted)).data;
  };
  const message = ({ projectId, id }: Hook, messageId: WebhookMessageId): Promise<WebhookMessageDetail> =>
    sendRequest(bus, webhookMessageRequests.get, { projectId, webhookId: id, messageId });
  const cancellation = (projectId: ProjectId) => ({
    project_id: projectId,
    notification_id: newNotificationId(now()),
    at: now().toISOString(),
    counts: { devices: 0, accepted: 0, failed: 0, expired: 0, cancelled: 0 },
  });
  let made = 0;
  const publish = async <Name extends EventName>(event: Name, data: EventData<Name>, id = `event-${made++}`) => {
    await publishEvent(bus, { id, event, subject: "x", at: now(), data } as OutboxEvent);
    return id;
  };

  return {
    bus,
    database,
    now,
    /** Puts the clock of analytics forward. */
    forward: (ms: number) => {
      ahead += ms;
    },
    /** Back to the broker's time: a webhook gets no events from before its creation. */
    present: () => {
      ahead = 0;
    },
    hook,
    read,
    messages,
    message,
    publish,
    /** Publishes an event of a project. Resolves to its id. */
    topicCreated: (projectId: ProjectId, topic = "news", id?: string) =>
      publish(
        "TopicCreatedV1",
        { project_id: projectId, topic_id: newTopicId(now()), topic, at: now().toISOString() },
        id,
      ),
    cancelled: (projectId: ProjectId) => publish("NotificationCancelledV1", cancellation(projectId)),
    /** Publishes cancellations that share messages. Resolves to their ids. */
    cancelledTogether: async (projectId: ProjectId, count: number): Promise<string[]> => {
      const all = Array.from({ length: count }, (): OutboxEvent => {
        const data = cancellation(projectId);
        const subject = data.notification_id;
        return { id: `event-${made++}`, event: "NotificationCancelledV1", subject, at: now(), data };
      });
      await publishEvents(bus, all);
      return all.map(({ id }) => id);
    },
    /** Stops the process and starts another one, with a changed configuration, timeout of requests or interval of polls if given. */
    restart: async (...changed: Parameters<typeof newApp>) => {
      await app.stop();
      app = newApp(...changed);
      await app.start();
      await ready();
    },
    stop: async () => {
      await app.stop();
      await closeBus(bus);
      await database.drop();
      await broker.stop();
    },
  };
};

export type WebhookTest = Awaited<ReturnType<typeof startWebhookTest>>;
