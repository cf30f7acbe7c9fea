import { variables } from "./variables.ts";

/** The broker, and who this part is there: user and password, an nkey's seed, or a file of credentials; none where it asks for none. */
export const natsConfig = {
  HERALD_NATS_URL: variables.urls("nats", "tls", "ws", "wss"),
  HERALD_NATS_USER: variables.text().optional(),
  HERALD_NATS_PASSWORD: variables.secret({ least: 1 }).optional(),
  HERALD_NATS_NKEY_SEED: variables.secret({ least: 58 }).optional(),
  HERALD_NATS_CREDS_FILE: variables.text().optional(),
};

/** The database server; each service has a database of its own on it. */
export const mongoConfig = {
  HERALD_MONGO_URL: variables.mongoUrl(),
};

/**
 * How often a service looks for what is older than its retention. Retention is counted in days, and a look without anything to
 * remove is a query for each collection, by one of the replicas.
 */
export const retentionConfig = {
  HERALD_RETENTION_INTERVAL: variables.durationMs({ least: 1_000, most: 86_400_000 }).default(3_600_000),
};

/** Debug shows every probe and every settled message; info one line for each request. */
export const logConfig = {
  HERALD_LOG_LEVEL: variables.choice("trace", "debug", "info", "warn", "error", "fatal", "silent").default("info"),
};

/** Where traces go. Without it none are recorded, but incoming ones are still continued. The names are OpenTelemetry's. */
export const telemetryConfig = {
  OTEL_EXPORTER_OTLP_ENDPOINT: variables.url("http", "https").optional(),
};

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
  } as {
    [Key in `HERALD_${Uppercase<Service>}_HOST`]: ReturnType<ReturnType<typeof variables.host>["default"]>;
  } & {
    [Key in `HERALD_${Uppercase<Service>}_PORT` | `HERALD_${Uppercase<Service>}_METRICS_PORT`]: ReturnType<
      ReturnType<typeof variables.port>["default"]
    >;
  };
};
