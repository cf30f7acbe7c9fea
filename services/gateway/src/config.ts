import { streams } from "@herald/contracts";
import { httpConfig, logConfig, natsConfig, telemetryConfig, variables } from "@herald/kit";
import { parseOpenKeys } from "@herald/payload";
import { z } from "zod";

const maxPerWindow = 10_000_000;
const maxPerHour = 1_000_000_000;
/** What the broker still counts in one answer. */
const maxQueued = 100_000;
const queueBytes = streams.PUSH_CMD.maxBytes;

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
   * Refused credentials and opens, per address and 10 seconds. Ten a second are far above a mistyped configuration that
   * retries and far below a search; valid requests are never counted.
   */
  HERALD_GATEWAY_LIMIT_FAILURES: variables.integer({ least: 1, most: maxPerWindow }).default(100),
  /**
   * Requests without a credential, per address and 10 seconds: by client identity, for documents, to paths that are none.
   * Sixty a second leave room for the many phones behind one carrier's address, and at a millisecond or two each for others.
   */
  HERALD_GATEWAY_LIMIT_CLIENTS: variables.integer({ least: 1, most: maxPerWindow }).default(600),
  /**
   * Connections at a time. Each costs some 15 KB, and up to 32 KB while its headers come; idle ones are closed for new ones, so
   * that only as many requests under way as this are too many.
   */
  HERALD_GATEWAY_LIMIT_CONNECTIONS: variables.integer({ least: 1, most: 1_000_000 }).default(2_000),
  /** Connections of one address at a time, so that it takes four to fill all. Not counted behind proxies, whose connections all come from them. */
  HERALD_GATEWAY_LIMIT_ADDRESS_CONNECTIONS: variables.integer({ least: 1, most: 1_000_000 }).default(500),
  /**
   * Bytes of bodies that arrive and of answers that are not taken yet, at a time: sixty of the largest bodies. With
   * the connections and what the gateway needs for itself this stays within 512 MiB.
   */
  HERALD_GATEWAY_LIMIT_HELD: variables.bytes({ least: 1_048_576 }).default(67_108_864),
  /** Such bytes of one address; of a proxy's clients each counts by its own. */
  HERALD_GATEWAY_LIMIT_ADDRESS_HELD: variables.bytes({ least: 1_048_576 }).default(16_777_216),
  /**
   * New devices by client identity, per address and hour. A carrier puts some thousand phones behind one address, of which few install
   * an app in the same hour; what a stranger registers from one stays far from a project's quota. Known devices are never counted.
   */
  HERALD_GATEWAY_LIMIT_NEW_DEVICES: variables.integer({ least: 1, most: maxPerHour }).default(2_000),
  /** Streams of events that are open at a time, in all. A reader that does not read holds about half a MiB until it is cut off. */
  HERALD_GATEWAY_LIMIT_STREAMS: variables.integer({ least: 0, most: 10_000 }).default(200),
  /** Streams of events of one project that are open at a time: a few services with replicas, and people who look on. */
  HERALD_GATEWAY_LIMIT_PROJECT_STREAMS: variables.integer({ least: 0, most: 10_000 }).default(20),
  /**
   * Requests with one project token, per 10 seconds: 500 a second are more than a backend has to say, and leave room for the
   * project's other tokens where one runs away.
   */
  HERALD_GATEWAY_LIMIT_TOKEN: variables.integer({ least: 1, most: maxPerWindow }).default(5_000),
  /** Requests with all tokens of a project, per 10 seconds: a thousand a second are a fraction of what a gateway answers. */
  HERALD_GATEWAY_LIMIT_PROJECT: variables.integer({ least: 1, most: maxPerWindow }).default(10_000),
  /** Requests with the credential of one device, per 10 seconds. An app says a few things when it starts. */
  HERALD_GATEWAY_LIMIT_DEVICE: variables.integer({ least: 1, most: maxPerWindow }).default(100),
  /**
   * Notifications of a project in an hour. 500 a second are kept up for half an hour; a loop that nobody notices is stopped before
   * it has filled ledgers for a day.
   */
  HERALD_GATEWAY_QUOTA_SENDS: variables.integer({ least: 1, most: maxPerHour }).default(1_000_000),
  /** Dry runs of a project in a minute: one a second, each of which reads every device of its audience. */
  HERALD_GATEWAY_QUOTA_DRY_RUNS: variables.integer({ least: 1, most: maxPerWindow }).default(60),
  /** Notifications of a project that wait to be started, in the queue that all projects share: 100 s of 500 a second, while the database is unavailable. */
  HERALD_GATEWAY_QUOTA_QUEUED: variables.integer({ least: 1, most: maxQueued }).default(50_000),
  /** Bytes of a project's notifications that wait to be started: an eighth of the queue's 4 GiB. */
  HERALD_GATEWAY_QUOTA_QUEUED_BYTES: variables.integer({ least: 1, most: queueBytes }).default(536_870_912),
});
export type GatewayConfig = z.infer<typeof GatewayConfig>;
