import { httpConfig, logConfig, mongoConfig, natsConfig, telemetryConfig, variables } from "@herald/kit";
import { z } from "zod";

const dayMs = 86_400_000;

/** The environment variables of analytics. */
export const AnalyticsConfig = z.object({
  ...natsConfig,
  ...mongoConfig,
  ...logConfig,
  ...telemetryConfig,
  ...httpConfig("analytics", { port: 8083, metricsPort: 9083 }),
  /** Databases that share a server, as tests do, are told apart by it. */
  HERALD_ANALYTICS_DATABASE: variables.text().default("herald_analytics"),
  /**
   * How long single opens and what was counted from each message are kept; figures stay. A quarter of a year is as long as anybody
   * asks when one device opened. At least 62 days: an open can be reported again for 30 days, and its report lie in the dead letters
   * for 30 more; without its row it would count twice.
   */
  HERALD_ANALYTICS_RETENTION: variables.durationMs({ least: 62 * dayMs }).default(90 * dayMs),
});
export type AnalyticsConfig = z.infer<typeof AnalyticsConfig>;
