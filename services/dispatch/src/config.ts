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
import { parseOpenKeys } from "@herald/payload";
import { z } from "zod";

const dayMs = 86_400_000;
/** What a stop leaves to the batches under way: an answer that takes longer would not be heard any more. */
export const drainMs = 25_000;

/** The environment variables of dispatch. */
export const DispatchConfig = z
  .object({
    ...natsConfig,
    ...mongoConfig,
    ...logConfig,
    ...telemetryConfig,
    ...retentionConfig,
    ...httpConfig("dispatch", { port: 8082, metricsPort: 9082 }),
    /** Databases that share a server, as tests do, are told apart by it. */
    HERALD_DISPATCH_DATABASE: variables.text().default("herald_dispatch"),
    /** Wraps the data keys of the providers' credentials: without it they cannot be read, with another they are lost. */
    HERALD_DISPATCH_MASTER_KEYS: variables.keyRing(parseMasterKeys, "wrapping"),
    /** The ring that open tokens are signed with: the gateway, which verifies them, gets the same value. */
    HERALD_OPEN_KEYS: variables.keyRing(parseOpenKeys, "signing"),
    /** Whether a project may send to another host than the provider's: credentials go there, so it is the operator's to allow. */
    HERALD_DISPATCH_CUSTOM_ENDPOINTS: variables.flag().default(false),
    /**
     * Whether Web Push subscriptions may name every public host, as UnifiedPush needs, and not only the browsers' push
     * services: an endpoint is a URL that a stranger gave.
     */
    HERALD_DISPATCH_WEBPUSH_ANY_HOST: variables.flag().default(false),
    /**
     * How long a notification is kept after its end: its content, its counts and its deliveries. Statistics keep its figures.
     * Support questions about a single delivery end within a quarter of a year. At least 30 days: until then a dead letter can
     * be replayed, and no batch that comes again so late is sent, because its notification has expired.
     */
    HERALD_DISPATCH_RETENTION: variables.durationMs({ min: 30 * dayMs }).default(90 * dayMs),
    /** Batches of one lane and platform that are sent at a time. Each has at most 1,000 devices: sixteen keep two cores busy. */
    HERALD_DISPATCH_BATCHES: variables.integer({ min: 1, max: 256 }).default(16),
    /** How many of those may be one project's: while one is sent, others start or write their outcomes. */
    HERALD_DISPATCH_BATCHES_PER_PROJECT: variables.integer({ min: 1, max: 256 }).default(4),
    /**
     * Batches of one lane and platform in memory, those that wait for their turn included: enough for eight projects at their limit.
     * Of the direct lane, where most have one device, sixteen times as many.
     */
    HERALD_DISPATCH_BATCHES_IN_MEMORY: variables.integer({ min: 1, max: 1_024 }).default(64),
    /** Requests of one project to one provider that wait for an answer: at 50 ms that is 40,000 pushes a second, and some MB. */
    HERALD_DISPATCH_IN_FLIGHT: variables.integer({ min: 50, max: 16_000 }).default(2_000),
    /** Connections of one project to one provider. Apple sees up to about sixteen pay off; one thread feeds them all. */
    HERALD_DISPATCH_CONNECTIONS: variables.integer({ min: 1, max: 16 }).default(4),
    /** Projects' clients that are kept open: each holds its connections and about 1 MB. */
    HERALD_DISPATCH_CLIENTS: variables.integer({ min: 1, max: 10_000 }).default(200),
    /** How long a provider may take for an answer. No longer than a stop waits for one. */
    HERALD_DISPATCH_REQUEST_TIMEOUT: variables.durationMs({ min: 1_000, max: drainMs }).default(20_000),
  })
  .superRefine((config, context) => {
    const problem = (name: keyof typeof config, message: string) =>
      context.addIssue({ code: "custom", path: [name], message });
    if (config.HERALD_DISPATCH_BATCHES_PER_PROJECT > config.HERALD_DISPATCH_BATCHES)
      problem("HERALD_DISPATCH_BATCHES_PER_PROJECT", "must not be more than HERALD_DISPATCH_BATCHES");
    if (config.HERALD_DISPATCH_BATCHES_IN_MEMORY < config.HERALD_DISPATCH_BATCHES)
      problem("HERALD_DISPATCH_BATCHES_IN_MEMORY", "must not be less than HERALD_DISPATCH_BATCHES");
  });
export type DispatchConfig = z.infer<typeof DispatchConfig>;
