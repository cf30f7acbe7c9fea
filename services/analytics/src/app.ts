import { limitEventsPerProject } from "@herald/bus";
import { createErasureStore, startRetention } from "@herald/mongo";
import {
  createService,
  type EraseRows,
  eraseUser,
  type Service,
  type ServiceDefinition,
  type ServiceDeps,
  startErasurePasses,
} from "@herald/service";
import type { AnalyticsConfig } from "./config.ts";
import { deleteProject } from "./handlers/delete-project.ts";
import { recordEvents } from "./handlers/record-events.ts";
import { recordOpens } from "./handlers/record-opens.ts";
import { createAggregation } from "./jobs/aggregate-stats.ts";
import { createPublishOpens, sweepOpens } from "./jobs/publish-opens.ts";
import { retentionRules } from "./jobs/retention.ts";
import { handleOpenRequests } from "./requests/opens.ts";
import { handleStatsRequest } from "./requests/stats.ts";
import { createStores } from "./stores/create-stores.ts";
import { createWebhooks, type WebhookOverrides } from "./webhooks/create-webhooks.ts";
import { erasePayload } from "./webhooks/erase-payload.ts";

/** The greater part of a stop: opens in progress are stored first. */
const drainMs = 20_000;
/** Requests to slow webhooks that take longer are aborted and sent again. */
const webhooksMs = 5_000;

const assemble = (config: AnalyticsConfig, ground: ServiceDeps & WebhookOverrides): ServiceDefinition => {
  const { bus, db, log, now = () => new Date() } = ground;

  const stores = createStores(db);
  const { opens, rollups, notificationFacts } = stores;
  const erasures = createErasureStore(db);
  const webhooks = createWebhooks(config, ground);
  const aggregation = createAggregation(stores, now, log);
  const publishOpens = createPublishOpens(bus, opens);
  const rules = retentionRules(stores, config);
  const erase: EraseRows = async ({ projectId, key, at }) => {
    await notificationFacts.eraseUser(projectId, key, at);
    await webhooks.rewrite(projectId, at, (payload) => erasePayload(payload, projectId, key));
  };
  const erasing = { erasures, erase, now };

  return {
    prepare: async () => {
      for (const { ensureIndexes } of [...Object.values(stores), erasures]) await ensureIndexes();
      await webhooks.prepare();
    },
    handlers: [
      recordOpens(opens, aggregation.store, notificationFacts, publishOpens),
      recordEvents(aggregation.store, notificationFacts, webhooks.createMessages),
      deleteProject([...Object.values(stores), ...webhooks.stores, { removePage: erasures.removeProject }]),
      eraseUser("analytics-erase-user", erasing),
    ],
    begin: () => {
      const listeners = [...handleOpenRequests(bus, opens, rollups), handleStatsRequest(bus, stores)];
      const jobs = [
        startErasurePasses(erasing, log),
        sweepOpens(opens, publishOpens, log, now),
        aggregation.begin(),
        limitEventsPerProject(bus),
        startRetention({ db, rules, everyMs: config.HERALD_RETENTION_INTERVAL, now, log }),
      ];
      const stopWebhooks = webhooks.begin();
      return async () => {
        await Promise.all(listeners.map((each) => each.stop()));
        await stopWebhooks(webhooksMs);
        await Promise.all(jobs.map((each) => each.stop()));
      };
    },
  };
};

export const createApp = (config: AnalyticsConfig, overrides: WebhookOverrides = {}): Service =>
  createService({
    name: "analytics",
    config,
    host: config.HERALD_ANALYTICS_HOST,
    port: config.HERALD_ANALYTICS_PORT,
    metricsPort: config.HERALD_ANALYTICS_METRICS_PORT,
    database: config.HERALD_ANALYTICS_DATABASE,
    drainMs,
    assemble: (ground) => assemble(config, { ...ground, ...overrides }),
  });
