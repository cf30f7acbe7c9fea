import type { z } from "zod";
import * as variables from "./variables.ts";

/** A part logs in with user and password, an nkey or a credentials file, or without any if the broker needs no login. */
export const natsConfig = {
  /** The broker; of a cluster, one server is enough. */
  HERALD_NATS_URL: variables.urls("nats", "tls", "ws", "wss"),
  /** The NATS user, as in infra/nats.conf. */
  HERALD_NATS_USER: variables.text().optional(),
  /** Its password. */
  HERALD_NATS_PASSWORD: variables.secret({ min: 1 }).optional(),
  /** Instead of user and password: the seed of an nkey, `SU…`. */
  HERALD_NATS_NKEY_SEED: variables.secret({ min: 58 }).optional(),
  /** Instead of user and password: the path of a `.creds` file. */
  HERALD_NATS_CREDS_FILE: variables.text().optional(),
};

export const mongoConfig = {
  /** The database server, with the service's user and password. Each service has a database of its own there. */
  HERALD_MONGO_URL: variables.mongoUrl(),
};

export const logConfig = {
  /** `debug` logs every probe and settled message, `info` one line for each request. */
  HERALD_LOG_LEVEL: variables.choice("trace", "debug", "info", "warn", "error", "fatal", "silent").default("info"),
};

export const telemetryConfig = {
  /**
   * Where to export traces by OTLP. Without it Herald records none, but propagates the caller's. OpenTelemetry's other variables work
   * too: see observe.md.
   */
  OTEL_EXPORTER_OTLP_ENDPOINT: variables.url("http", "https").optional(),
};

/** The way out of a service that calls servers elsewhere. */
export const proxyConfig = {
  /**
   * The proxy, by CONNECT, for https to push services, webhooks and the identity provider: see deploy.md. May contain user and
   * password. Also read in lower case.
   */
  HTTPS_PROXY: variables.proxyUrl().optional(),
  /**
   * What is reached without the proxy: names and all below them, addresses, networks such as `10.0.0.0/8`, each also with a port; `*`
   * is everything. This machine never needs to be named. Also read in lower case.
   */
  NO_PROXY: variables.text().optional(),
};

/** For services that call servers that strangers name. */
export const proxyResolvesConfig = {
  /**
   * Whether the proxy resolves the names of webhooks and, with HERALD_DISPATCH_WEBPUSH_ANY_HOST, of push services. By default Herald
   * does, and asks for a checked address. With `true` the proxy must itself refuse internal addresses.
   */
  HERALD_PROXY_RESOLVES: variables.flag().default(false),
};

/** Where a service listens. Each has other default ports, so that all can run on one machine. */
export const httpConfig = (ports: { readonly port: number; readonly metricsPort: number }) => ({
  /** Address to listen on. Containers set `0.0.0.0`. */
  HERALD_HOST: variables.host().default("127.0.0.1"),
  /** Port of HTTP, `/livez` and `/readyz`. */
  HERALD_PORT: variables.port().default(ports.port),
  /** Port of `/metrics`, for Prometheus. Do not expose it to the internet. */
  HERALD_METRICS_PORT: variables.port().default(ports.metricsPort),
  /** Address of `/metrics`, if it is not HERALD_HOST. */
  HERALD_METRICS_HOST: variables.host().optional(),
});

const databaseConfig = {
  /** Begins the names of the databases, such as `herald_registry`, so that installations can share a server. */
  HERALD_DATABASE_PREFIX: variables.text().default("herald"),
};

/** The environment variables that every service with a database has. */
export const serviceConfig = (ports: { readonly port: number; readonly metricsPort: number }) => ({
  ...natsConfig,
  ...mongoConfig,
  ...logConfig,
  ...telemetryConfig,
  ...httpConfig(ports),
  ...databaseConfig,
});

/** The name of a service's database. */
export const databaseOf = (
  config: z.infer<z.ZodObject<typeof databaseConfig>>,
  service: "registry" | "dispatch" | "analytics",
): string => `${config.HERALD_DATABASE_PREFIX}_${service}`;
