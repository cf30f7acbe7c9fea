import { httpConfig, logConfig, natsConfig, telemetryConfig, variables } from "@herald/kit";
import { parseOpenKeys } from "@herald/payload";
import { z } from "zod";

const mostPerWindow = 10_000_000;

/** The gateway's environment variables. */
export const GatewayConfig = z.object({
  ...natsConfig,
  ...logConfig,
  ...telemetryConfig,
  ...httpConfig("gateway", { port: 8080, metricsPort: 9080 }),
  /** Opens everything under `/admin/v1`, so it is as long as a project token's random part. */
  HERALD_ADMIN_TOKEN: variables.secret({ least: 24 }),
  /** The ring that dispatch signs open tokens with: both services get the same value. */
  HERALD_OPEN_KEYS: variables.keyRing(parseOpenKeys, "signing"),
  /** Proxies in front of the gateway, whose `X-Forwarded-For` is believed. None unless said, or anyone could choose an address. */
  HERALD_GATEWAY_TRUST_PROXY: variables.integer({ least: 0, most: 16 }).default(0),
  /**
   * Refused credentials and forged open tokens, per address and 10 seconds. Ten a second are far above a mistyped
   * configuration that retries and far below a search; valid requests are never counted.
   */
  HERALD_GATEWAY_LIMIT_FAILURES: variables.integer({ least: 1, most: mostPerWindow }).default(100),
  /**
   * Requests by client identity, which no credential protects, per address and 10 seconds. Sixty a second leave room for
   * the many phones behind one carrier's address.
   */
  HERALD_GATEWAY_LIMIT_CLIENTS: variables.integer({ least: 1, most: mostPerWindow }).default(600),
  /** Streams of events that are open at a time, in all. A reader that does not read holds about half a MiB until it is cut off. */
  HERALD_GATEWAY_LIMIT_STREAMS: variables.integer({ least: 0, most: 10_000 }).default(200),
  /** Of one project: a few services with replicas, and people who look on. */
  HERALD_GATEWAY_LIMIT_PROJECT_STREAMS: variables.integer({ least: 0, most: 10_000 }).default(20),
});
export type GatewayConfig = z.infer<typeof GatewayConfig>;
