import {
  httpConfig,
  logConfig,
  mongoConfig,
  natsConfig,
  parseMasterKeys,
  retentionConfig,
  telemetryConfig,
  variables,
} from "@herald/kit";
import { z } from "zod";

const dayMs = 86_400_000;

const variablesOfAnalytics = z.object({
  ...natsConfig,
  ...mongoConfig,
  ...logConfig,
  ...telemetryConfig,
  ...retentionConfig,
  ...httpConfig("analytics", { port: 8083, metricsPort: 9083 }),
  /** Databases that share a server, as tests do, are told apart by it. */
  HERALD_ANALYTICS_DATABASE: variables.text().default("herald_analytics"),
  /**
   * How long single opens and what was counted from each message are kept; figures stay. A quarter of a year is as long as anybody
   * asks when one device opened. At least 62 days: an open can be reported again for 30 days, and its report lie in the dead letters
   * for 30 more; without its row it would count twice.
   */
  HERALD_ANALYTICS_RETENTION: variables.durationMs({ least: 62 * dayMs }).default(90 * dayMs),
  /**
   * How long statistics are kept: a project's hours, and the figures of a notification from its acceptance on. More than two years,
   * so that a month can be compared with the same of the year before last.
   */
  HERALD_ANALYTICS_STATISTICS_RETENTION: variables.durationMs({ least: 62 * dayMs }).default(800 * dayMs),
  /** Wraps the data keys of the webhooks' secrets: without it they cannot be read, with another they are lost. */
  HERALD_ANALYTICS_MASTER_KEYS: variables.keyRing(parseMasterKeys, "wrapping"),
  /**
   * Whether webhooks may be anywhere: inside the network, on any port, without TLS. For development, where the receiver is on
   * this machine; elsewhere it would let projects reach what stands behind the firewall.
   */
  HERALD_ANALYTICS_WEBHOOKS_ANY_HOST: variables.flag().default(false),
  /** How long a receiver may take for its answer. Standard Webhooks recommends 15 to 30 seconds. */
  HERALD_ANALYTICS_WEBHOOKS_TIMEOUT: variables.durationMs({ least: 1_000, most: 60_000 }).default(20_000),
});

/** The environment variables of analytics. */
export const AnalyticsConfig = variablesOfAnalytics.superRefine((config, context) => {
  // A rebuild makes figures from every row that is there, also those that were removed because they are old.
  if (config.HERALD_ANALYTICS_STATISTICS_RETENTION < config.HERALD_ANALYTICS_RETENTION)
    context.addIssue({
      code: "custom",
      path: ["HERALD_ANALYTICS_STATISTICS_RETENTION"],
      message: "must not be less than HERALD_ANALYTICS_RETENTION",
    });
});
export type AnalyticsConfig = z.infer<typeof AnalyticsConfig>;
