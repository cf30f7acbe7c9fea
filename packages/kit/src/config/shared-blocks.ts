import type { z } from "zod";
import * as variables from "./variables.ts";

/** A part logs in with user and password, an nkey or a credentials file, or without any if the broker needs no login. */
export const natsConfig = {
  /** The broker. One server of a cluster is enough. */
  HERALD_NATS_URL: variables.urls("nats", "tls", "ws", "wss"),
  /** The part's NATS user, as in infra/nats.conf. */
  HERALD_NATS_USER: variables.text().optional(),
  /** That user's password. */
  HERALD_NATS_PASSWORD: variables.secret({ min: 1 }).optional(),
  /** Instead of user and password: the seed of an nkey, `SU…`. */
  HERALD_NATS_NKEY_SEED: variables.secret({ min: 58 }).optional(),
  /** Instead of user and password: the path of a `.creds` file, with a user's JWT and seed. */
  HERALD_NATS_CREDS_FILE: variables.text().optional(),
};

export const mongoConfig = {
  /** The database server, with the service's user and password. Each service has its own database there. */
  HERALD_MONGO_URL: variables.mongoUrl(),
};

const retentionConfig = {
  /**
   * How often a service removes documents that are older than their retention, which is counted in days. A run that finds nothing
   * costs one replica a query for each collection.
   */
  HERALD_RETENTION_INTERVAL: variables.durationMs({ min: 1_000, max: 86_400_000 }).default(3_600_000),
};

export const logConfig = {
  /** `debug` logs every probe and every settled message, `info` one line for each request. */
  HERALD_LOG_LEVEL: variables.choice("trace", "debug", "info", "warn", "error", "fatal", "silent").default("info"),
};

export const telemetryConfig = {
  /**
   * Where to export traces by OTLP. Without it Herald records none, but still propagates the caller's trace. OpenTelemetry's
   * other variables work too: see observe.md.
   */
  OTEL_EXPORTER_OTLP_ENDPOINT: variables.url("http", "https").optional(),
};

/** The environment variables that every service with a database has, besides those named after it. */
export const serviceConfig = { ...natsConfig, ...mongoConfig, ...logConfig, ...telemetryConfig, ...retentionConfig };

type WithDefault<Variable extends () => z.ZodType> = ReturnType<ReturnType<Variable>["default"]>;

/**
 * Where a service listens: `HERALD_<SERVICE>_HOST`, `…_PORT` and `…_METRICS_PORT`. Without a host it is reachable from
 * this machine alone, so that nothing is exposed by an oversight; containers set 0.0.0.0.
 */
export const httpConfig = <Service extends string>(service: Service, ports: { port: number; metricsPort: number }) => {
  const name = service.toUpperCase() as Uppercase<Service>;
  return {
    [`HERALD_${name}_HOST`]: variables.host().default("127.0.0.1"),
    [`HERALD_${name}_PORT`]: variables.port().default(ports.port),
    [`HERALD_${name}_METRICS_PORT`]: variables.port().default(ports.metricsPort),
  } as Record<`HERALD_${Uppercase<Service>}_HOST`, WithDefault<typeof variables.host>> &
    Record<`HERALD_${Uppercase<Service>}_${"PORT" | "METRICS_PORT"}`, WithDefault<typeof variables.port>>;
};
