import { variables } from "./variables.ts";

/** A part identifies itself by user and password, by an nkey, or by a file of credentials; by nothing where the broker asks for nothing. */
export const natsConfig = {
  /** The broker: one server of a cluster is enough. */
  HERALD_NATS_URL: variables.urls("nats", "tls", "ws", "wss"),
  /** The part's user of the broker, as infra/nats.conf names it. */
  HERALD_NATS_USER: variables.text().optional(),
  /** That user's password. */
  HERALD_NATS_PASSWORD: variables.secret({ min: 1 }).optional(),
  /** Instead of user and password: the seed of an nkey, `SU…`. */
  HERALD_NATS_NKEY_SEED: variables.secret({ min: 58 }).optional(),
  /** Instead of user and password: the path of a `.creds` file, with a user's JWT and seed. */
  HERALD_NATS_CREDS_FILE: variables.text().optional(),
};

export const mongoConfig = {
  /** The database server, with the service's user and password. Each service has a database of its own on it. */
  HERALD_MONGO_URL: variables.mongoUrl(),
};

export const retentionConfig = {
  /**
   * How often a service looks for what is older than its retention. Retention is counted in days, and a look without anything to
   * remove is a query for each collection, by one of the replicas.
   */
  HERALD_RETENTION_INTERVAL: variables.durationMs({ min: 1_000, max: 86_400_000 }).default(3_600_000),
};

export const logConfig = {
  /** `debug` logs every probe and every settled message, `info` one line for each request. */
  HERALD_LOG_LEVEL: variables.choice("trace", "debug", "info", "warn", "error", "fatal", "silent").default("info"),
};

export const telemetryConfig = {
  /**
   * Where traces go, by OTLP. Without it none are recorded, but incoming ones are still continued. OpenTelemetry's other variables work
   * too: see observe.md.
   */
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
