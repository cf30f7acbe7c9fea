import { httpConfig, logConfig, mongoConfig, natsConfig, telemetryConfig, variables } from "@herald/kit";
import { z } from "zod";

/** The environment variables of analytics. */
export const AnalyticsConfig = z.object({
  ...natsConfig,
  ...mongoConfig,
  ...logConfig,
  ...telemetryConfig,
  ...httpConfig("analytics", { port: 8083, metricsPort: 9083 }),
  /** Databases that share a server, as tests do, are told apart by it. */
  HERALD_ANALYTICS_DATABASE: variables.text().default("herald_analytics"),
});
export type AnalyticsConfig = z.infer<typeof AnalyticsConfig>;
