import { createService, type Service } from "@herald/service";
import { assemble } from "./assemble.ts";
import type { AnalyticsConfig } from "./config.ts";
import type { WebhookOverrides } from "./webhooks/create-webhooks.ts";

/** Opens that are being stored get the greater part of a stop. */
const drainMs = 20_000;

/** Analytics, put together. */
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
