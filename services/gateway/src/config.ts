import { streams } from "@herald/contracts";
import { httpConfig, logConfig, natsConfig, parseOpenKeys, telemetryConfig, variables } from "@herald/kit";
import { z } from "zod";

const maxPerWindow = 10_000_000;
const maxPerHour = 1_000_000_000;
/** The most that the broker counts in one response. */
const maxQueued = 100_000;
const queueBytes = streams.PUSH_CMD.maxBytes;

/** The gateway's environment variables. */
export const GatewayConfig = z.object({
  ...natsConfig,
  ...logConfig,
  ...telemetryConfig,
  ...httpConfig("gateway", { port: 8080, metricsPort: 9080 }),
  /**
   * A second port, for operators: `/admin/v1`, `/console` and `/api/v1`. The first port then serves only `/api/v1` and `/docs`,
   * and accepts no credential of an operator. Without it, the first port serves everything.
   */
  HERALD_GATEWAY_ADMIN_PORT: variables.port().optional(),
  /**
   * The address that the admin port listens on. In a container set `0.0.0.0`, and limit access by the published port or the
   * network policy.
   */
  HERALD_GATEWAY_ADMIN_HOST: variables.host().default("127.0.0.1"),
  /** Grants everything under `/admin/v1`, so it must be as long as the random part of a project token. */
  HERALD_ADMIN_TOKEN: variables.secret({ min: 24 }),
  /** The keys that sign open tokens and encrypt the positions of event streams. Gateway and dispatch need the same value. */
  HERALD_OPEN_KEYS: variables.keyRing(parseOpenKeys, "signing"),
  /** Whether the gateway serves the console for operators at `/console`. */
  HERALD_GATEWAY_CONSOLE: variables.flag().default(true),
  /**
   * The number of proxies in front of the gateway whose `X-Forwarded-For` is trusted. 0 by default, because otherwise clients
   * could claim any address.
   */
  HERALD_GATEWAY_TRUST_PROXY: variables.integer({ min: 0, max: 16 }).default(0),
  /** The same for the admin port, which most operators reach without the proxies of the public port. */
  HERALD_GATEWAY_ADMIN_TRUST_PROXY: variables.integer({ min: 0, max: 16 }).default(0),
  /**
   * Refused credentials and opens per address in 10 seconds. Ten a second are far more than a misconfigured client needs and far
   * too few to guess a token. Valid requests are never counted.
   */
  HERALD_GATEWAY_LIMIT_FAILURES: variables.integer({ min: 1, max: maxPerWindow }).default(100),
  /**
   * Requests without a credential per address in 10 seconds: by client identity, for documents, to unknown paths. Sixty a second
   * are enough for the many phones behind one carrier address, and cost the gateway 1 to 2 ms each.
   */
  HERALD_GATEWAY_LIMIT_CLIENTS: variables.integer({ min: 1, max: maxPerWindow }).default(600),
  /**
   * Open connections. Each costs about 15 KB, up to 32 KB while its headers arrive. When the limit is reached, idle connections
   * are closed first, so only this many requests at the same time exceed it.
   */
  HERALD_GATEWAY_LIMIT_CONNECTIONS: variables.integer({ min: 1, max: 1_000_000 }).default(2_000),
  /**
   * Open connections of one address: four addresses together can use up all. Not applied behind proxies, where all connections
   * come from the proxies.
   */
  HERALD_GATEWAY_LIMIT_ADDRESS_CONNECTIONS: variables.integer({ min: 1, max: 1_000_000 }).default(500),
  /**
   * Bytes of request bodies being received and of responses that clients have not read yet: room for sixty of the largest bodies.
   * Together with the connections and the gateway itself this stays within 512 MiB.
   */
  HERALD_GATEWAY_LIMIT_BODY_MEMORY: variables.bytes({ min: 1_048_576 }).default(67_108_864),
  /** The same for one address. Behind a proxy each client counts by its own address. */
  HERALD_GATEWAY_LIMIT_ADDRESS_BODY_MEMORY: variables.bytes({ min: 1_048_576 }).default(16_777_216),
  /**
   * New devices by client identity per address in an hour. A carrier puts some thousand phones behind one address, of which few
   * install an app in the same hour; a stranger at one address stays far from a project's quota. Known devices are never counted.
   */
  HERALD_GATEWAY_LIMIT_NEW_DEVICES: variables.integer({ min: 1, max: maxPerHour }).default(2_000),
  /** Open event streams. A client that stops reading costs about half a MiB until it is disconnected. */
  HERALD_GATEWAY_LIMIT_STREAMS: variables.integer({ min: 0, max: 10_000 }).default(200),
  /** Open event streams of one project: enough for a few services with replicas, and for people who watch. */
  HERALD_GATEWAY_LIMIT_PROJECT_STREAMS: variables.integer({ min: 0, max: 10_000 }).default(20),
  /** Running exports. Each has up to two pages of at most 4 MiB in memory. */
  HERALD_GATEWAY_LIMIT_EXPORTS: variables.integer({ min: 0, max: 1_000 }).default(8),
  /** Running exports of one project. The last places are for projects that have none. */
  HERALD_GATEWAY_LIMIT_PROJECT_EXPORTS: variables.integer({ min: 0, max: 1_000 }).default(2),
  /**
   * Requests with one project token, or of one operator, in 10 seconds. 500 a second are more than a backend needs, and a program in a loop leaves
   * room for the project's other tokens.
   */
  HERALD_GATEWAY_LIMIT_TOKEN: variables.integer({ min: 1, max: maxPerWindow }).default(5_000),
  /** Requests with all tokens of a project in 10 seconds. A thousand a second are a fraction of what a gateway can serve. */
  HERALD_GATEWAY_LIMIT_PROJECT: variables.integer({ min: 1, max: maxPerWindow }).default(10_000),
  /** Requests with the credential of one device in 10 seconds. An app sends a few when it starts. */
  HERALD_GATEWAY_LIMIT_DEVICE: variables.integer({ min: 1, max: maxPerWindow }).default(100),
  /**
   * Notifications of a project in an hour. It allows 500 a second for half an hour, and stops an unnoticed loop before it has
   * filled ledgers for a day.
   */
  HERALD_GATEWAY_QUOTA_SENDS: variables.integer({ min: 1, max: maxPerHour }).default(1_000_000),
  /** Dry runs of a project in a minute. Each reads every device of its audience, so one a second is enough. */
  HERALD_GATEWAY_QUOTA_DRY_RUNS: variables.integer({ min: 1, max: maxPerWindow }).default(60),
  /**
   * A project's notifications that wait in the queue that all projects share. The default lasts 100 s at 500 a second while the
   * database is unavailable.
   */
  HERALD_GATEWAY_QUOTA_QUEUED: variables.integer({ min: 1, max: maxQueued }).default(50_000),
  /** Bytes of a project's waiting notifications: an eighth of the queue's 4 GiB. */
  HERALD_GATEWAY_QUOTA_QUEUED_BYTES: variables.integer({ min: 1, max: queueBytes }).default(536_870_912),
});
export type GatewayConfig = z.infer<typeof GatewayConfig>;
