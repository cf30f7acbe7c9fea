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
  /** Encrypt the data keys of provider credentials. Without the right key the credentials are lost. */
  HERALD_DISPATCH_MASTER_KEYS: variables.keyRing(parseMasterKeys, "wrapping"),
  /** Sign open tokens and encrypt the positions of event streams. Gateway and dispatch need the same value. */
  HERALD_OPEN_KEYS: variables.keyRing(parseOpenKeys, "signing"),
  /** Whether a project may set another host than the provider's. Herald sends credentials to that host. */
  HERALD_DISPATCH_CUSTOM_ENDPOINTS: variables.flag().default(false),
  /** Whether Web Push subscriptions may be on any public host, as UnifiedPush needs, and not only on the browsers' push services. */
  HERALD_DISPATCH_WEBPUSH_ANY_HOST: variables.flag().default(false),
  // At least 30 days, because dead letters can be replayed for so long; a later repeat is not sent, because its notification has expired.
  /** How long a notification is kept after its end: content, counts and deliveries. */
  HERALD_DISPATCH_RETENTION: variables.durationMs({ min: 30 * dayMs }).default(90 * dayMs),
  /**
   * Batches of at most 1,000 devices of one lane and platform that are sent at the same time; one project may have half. Sixteen keep
   * two cores busy. Four times as many are in memory.
   */
  HERALD_DISPATCH_BATCHES: variables.integer({ min: 1, max: 256 }).default(16),
  /**
   * Requests of one project to one provider that wait for a response, 1,000 on each connection. At 50 ms, 4,000 allow 80,000 pushes a
   * second.
   */
  HERALD_DISPATCH_IN_FLIGHT: variables.integer({ min: 50, max: 16_000 }).default(4_000),
  // At most as long as a stopping service waits for a response.
  /** How long a provider may take to respond. */
  HERALD_DISPATCH_REQUEST_TIMEOUT: variables.durationMs({ min: 1_000, max: drainMs }).default(20_000),
});
export type DispatchConfig = z.infer<typeof DispatchConfig>;
