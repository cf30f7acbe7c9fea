import { busStatus, closeBus, connectBus, consume, consumersReady, serviceAccess } from "@herald/bus";
import { createHealth, createLifecycle, createLogger, startHealthServer, startTelemetry } from "@herald/kit";
import { connectMongo } from "@herald/mongo";
import { answerOpens } from "./answers/opens.ts";
import { answerStats } from "./answers/stats.ts";
import type { AnalyticsConfig } from "./config.ts";
import { emitOpens } from "./emit-opens.ts";
import { foldContributions, keepFolding } from "./fold-contributions.ts";
import { keepForgetting } from "./forget-old.ts";
import { countDeliveries } from "./handlers/count-deliveries.ts";
import { dropProject } from "./handlers/drop-project.ts";
import { noteNotification } from "./handlers/note-notification.ts";
import { recordOpens } from "./handlers/record-opens.ts";
import { createContributionStore } from "./stores/contribution-store.ts";
import { createHorizonStore } from "./stores/horizon-store.ts";
import { createNoticeStore } from "./stores/notice-store.ts";
import { createOpenStore } from "./stores/open-store.ts";
import { createRollupStore } from "./stores/rollup-store.ts";
import { sweepOpens } from "./sweep-opens.ts";
import { createWebhooks, type WebhookOverrides } from "./webhooks/create-webhooks.ts";

/** How long a stop may take in all; consumers get the greater part of it. */
const stopDeadlineMs = 30_000;
const drainMs = 20_000;
/** A request to a slow webhook may take longer than this: it is made again by whoever comes next. */
const webhooksMs = 5_000;

/** Analytics, put together. `start` resolves when it takes messages; it waits for a broker and a database that are away. */
export const createApp = (config: AnalyticsConfig, overrides: WebhookOverrides = {}) => {
  const { now = () => new Date() } = overrides;
  const log = createLogger({ service: "analytics", level: config.HERALD_LOG_LEVEL });
  const lifecycle = createLifecycle({ log, deadlineMs: stopDeadlineMs });
  let address = "";
  return {
    start: async (): Promise<void> => {
      const telemetry = await startTelemetry({
        service: "analytics",
        version: "0.1.0",
        metricsHost: config.HERALD_ANALYTICS_HOST,
        metricsPort: config.HERALD_ANALYTICS_METRICS_PORT,
        otlpEndpoint: config.OTEL_EXPORTER_OTLP_ENDPOINT,
      });
      const mongo = connectMongo({
        url: config.HERALD_MONGO_URL,
        database: config.HERALD_ANALYTICS_DATABASE,
        appName: "herald-analytics",
        log,
      });
      const opens = createOpenStore(mongo.db);
      const contributions = createContributionStore(mongo.db);
      const rollups = createRollupStore(mongo.db);
      const notices = createNoticeStore(mongo.db);
      const horizon = createHorizonStore(mongo.db);
      let consumers: Awaited<ReturnType<typeof consume>> | undefined;
      let bus: Awaited<ReturnType<typeof connectBus>> | undefined;
      const health = createHealth({
        bus: () => (bus !== undefined && busStatus(bus).connected) || "NATS is away",
        consumers: () => (consumers !== undefined && consumersReady(consumers)) || "not every durable is there",
        database: async () => (await mongo.ping()) || "the database is away",
        indexes: () => mongo.prepared() || "the indexes are not made yet",
      });
      const http = await startHealthServer({
        health,
        log,
        host: config.HERALD_ANALYTICS_HOST,
        port: config.HERALD_ANALYTICS_PORT,
      });
      address = http.address;

      bus = await connectBus({ ...serviceAccess(config, "analytics"), log });
      const connected = bus;
      const webhooks = createWebhooks(config, { ...overrides, bus: connected, db: mongo.db, log });
      let stopping = false;
      void mongo
        .prepare("indexes", async () => {
          for (const { ensureIndexes } of [opens, contributions, rollups, notices]) await ensureIndexes();
          await webhooks.prepare();
        })
        .then(() => {
          if (!stopping) webhooks.begin();
        });
      const emit = emitOpens(connected, opens);
      const sweep = sweepOpens(opens, emit, log, now);
      const folding = keepFolding(foldContributions(contributions, rollups, now), log);
      const forgetting = keepForgetting({ opens, contributions, horizon }, config.HERALD_ANALYTICS_RETENTION, log, now);
      const answers = [...answerOpens(connected, opens, rollups), answerStats(connected, rollups, notices)];
      const consuming = await consume(connected, [
        recordOpens(opens, contributions, notices, emit),
        countDeliveries(contributions),
        noteNotification(notices),
        dropProject([opens, contributions, rollups, notices, ...webhooks.stores]),
        webhooks.handler,
      ]);
      consumers = consuming;

      lifecycle.onStop("readiness", () => {
        stopping = true;
        health.shuttingDown();
      });
      lifecycle.onStop("consumers", () => consuming.stop(drainMs));
      lifecycle.onStop("answers", async () => {
        await Promise.all(answers.map((answering) => answering.stop()));
      });
      lifecycle.onStop("webhooks", () => webhooks.stop(webhooksMs));
      lifecycle.onStop("sweep", sweep.stop);
      lifecycle.onStop("folding", folding.stop);
      lifecycle.onStop("forgetting", forgetting.stop);
      lifecycle.onStop("http", () => http.stop(1_000));
      lifecycle.onStop("bus", () => closeBus(connected));
      lifecycle.onStop("database", mongo.close);
      lifecycle.onStop("telemetry", telemetry.stop);
    },
    stop: (): Promise<boolean> => lifecycle.stop("asked to"),
    address: (): string => address,
  };
};
