import {
  httpConfig,
  logConfig,
  mongoConfig,
  natsConfig,
  parseMasterKeys,
  telemetryConfig,
  variables,
} from "@herald/kit";
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
export type AnalyticsConfig = z.infer<typeof AnalyticsConfig>;
