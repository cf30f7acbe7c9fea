import {
  parseMasterKeys,
  parseOpenKeys,
  proxyConfig,
  proxyResolvesConfig,
  serviceConfig,
  variables,
} from "@herald/kit";
import { z } from "zod";

const dayMs = 86_400_000;
/** How long a stopping service waits for batches in progress. Responses that take longer are lost. */
export const drainMs = 25_000;

/** The environment variables of dispatch. */
export const DispatchConfig = z.object({
  ...serviceConfig({ port: 8082, metricsPort: 9082 }),
  ...proxyConfig,
  ...proxyResolvesConfig,
  /** Encrypts the data keys of provider credentials. Without the right key the credentials are lost. */
  HERALD_DISPATCH_MASTER_KEYS: variables.keyRing(parseMasterKeys, "wrapping"),
  /** The keys that sign open tokens and encrypt the positions of event streams. Gateway and dispatch need the same value. */
  HERALD_OPEN_KEYS: variables.keyRing(parseOpenKeys, "signing"),
  /**
   * Whether a project may set another host than the provider's. Herald sends credentials to that host, so only the operator can
   * allow it.
   */
  HERALD_DISPATCH_CUSTOM_ENDPOINTS: variables.flag().default(false),
  /**
   * Whether Web Push subscriptions may be on any public host, as UnifiedPush needs, and not only on the browsers' push
   * services. Off by default, because an endpoint is a URL from an untrusted client.
   */
  HERALD_DISPATCH_WEBPUSH_ANY_HOST: variables.flag().default(false),
  /**
   * How long a notification is kept after its end: its content, its counts and its deliveries. Statistics stay. A quarter of a
   * year covers most support questions about single deliveries. At least 30 days, because dead letters can be replayed for so
   * long; later, a repeated batch is not sent, because its notification has expired.
   */
  HERALD_DISPATCH_RETENTION: variables.durationMs({ min: 30 * dayMs }).default(90 * dayMs),
  /**
   * Batches of one lane and platform that are sent at the same time; one project may have half of them. Each has at most 1,000 devices;
   * sixteen keep two cores busy. Four times as many are in memory, including those that wait.
   */
  HERALD_DISPATCH_BATCHES: variables.integer({ min: 1, max: 256 }).default(16),
  /**
   * Requests of one project to one provider that wait for a response: 1,000 on each of four connections. With a latency of 50 ms,
   * 80,000 pushes a second. They need a few MB.
   */
  HERALD_DISPATCH_IN_FLIGHT: variables.integer({ min: 50, max: 16_000 }).default(4_000),
  /** How long a provider may take to respond. At most as long as a stopping service waits for a response. */
  HERALD_DISPATCH_REQUEST_TIMEOUT: variables.durationMs({ min: 1_000, max: drainMs }).default(20_000),
});
export type DispatchConfig = z.infer<typeof DispatchConfig>;
