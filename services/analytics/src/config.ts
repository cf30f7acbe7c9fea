import { parseMasterKeys, proxyConfig, proxyResolvesConfig, serviceConfig, variables } from "@herald/kit";
import { z } from "zod";

const dayMs = 86_400_000;

const variablesOfAnalytics = z.object({
  ...serviceConfig({ port: 8083, metricsPort: 9083 }),
  ...proxyConfig,
  ...proxyResolvesConfig,
  // At least 62 days: an open can be reported for 30 days and wait as a dead letter for 30 more; without its row it would count twice.
  /** How long opens and statistics deltas are kept; rollups stay. */
  HERALD_ANALYTICS_RETENTION: variables.durationMs({ min: 62 * dayMs }).default(90 * dayMs),
  /** How long rollups are kept: long enough to compare a month with the same one two years before. */
  HERALD_ANALYTICS_STATISTICS_RETENTION: variables.durationMs({ min: 62 * dayMs }).default(800 * dayMs),
  /** Encrypt the data keys of webhook secrets. Without the right key the secrets are lost. */
  HERALD_ANALYTICS_MASTER_KEYS: variables.keyRing(parseMasterKeys, "wrapping"),
  /**
   * Allows webhooks with private addresses, on any port, without TLS. Only for development: it opens the internal network to projects.
   */
  HERALD_ANALYTICS_WEBHOOKS_ANY_HOST: variables.flag().default(false),
});

/** The environment variables of analytics. */
export const AnalyticsConfig = variablesOfAnalytics.superRefine((config, context) => {
  // A rebuild would otherwise restore rollups that retention has removed.
  if (config.HERALD_ANALYTICS_STATISTICS_RETENTION < config.HERALD_ANALYTICS_RETENTION)
    context.addIssue({
      code: "custom",
      path: ["HERALD_ANALYTICS_STATISTICS_RETENTION"],
      message: "must not be less than HERALD_ANALYTICS_RETENTION",
    });
});
export type AnalyticsConfig = z.infer<typeof AnalyticsConfig>;
