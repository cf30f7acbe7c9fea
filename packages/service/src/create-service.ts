import {
  type Bus,
  busReady,
  type Consuming,
  closeBus,
  connectBus,
  consume,
  type Handler,
  type Measuring,
  measureQueues,
  reportStatus,
  type StatusReportOptions,
  serviceAccess,
} from "@herald/bus";
import type { StatusReport } from "@herald/contracts";
import {
  createHealth,
  createLifecycle,
  createLogger,
  databaseOf,
  keyIdsOf,
  type Logger,
  proxyAddressOf,
  type serviceConfig,
  startHealthServer,
  startTelemetry,
} from "@herald/kit";
import { connectMongo, createPositionStore, type MongoHandle } from "@herald/mongo";
import type { z } from "zod";

/** Deadline of a whole stop: by default Kubernetes kills a pod after 30 s. */
const stopDeadlineMs = 30_000;
/** Time for probes in progress to finish. */
const finishProbesMs = 1_000;

export type ServiceConfig = z.infer<z.ZodObject<ReturnType<typeof serviceConfig>>> & {
  readonly HTTPS_PROXY?: string | undefined;
};

/** The connections and the log of every service. */
export type ServiceDeps = { readonly bus: Bus; readonly db: MongoHandle["db"]; readonly log: Logger };

/** The parts of a service. `createService` starts and stops them. */
export type ServiceDefinition = {
  /** Prepares the database before anything begins: every query names its index. Repeatable. */
  readonly prepare: () => Promise<void>;
  /** Handlers get messages once the database is prepared. */
  readonly handlers: readonly Handler[];
  /**
   * Starts request handlers and jobs before the first message is handled. Returns them in the order in which they are stopped after the
   * last message: one list after the other, the parts of a list at the same time.
   */
  readonly begin: () => readonly (readonly { stop: () => Promise<void> }[])[];
  /** What the status page shows for the service besides its readiness. */
  readonly status?: () => Promise<Pick<StatusReport, "providers">>;
  /** The first step of a stop: waiting work no longer starts. */
  readonly closeGates?: () => void;
};

export type ServiceOptions = {
  readonly name: "registry" | "dispatch" | "analytics";
  readonly config: ServiceConfig;
  /** How long a stop waits for messages in progress: most of the 30 s of a whole stop. */
  readonly drainMs: number;
  readonly assemble: (deps: ServiceDeps) => ServiceDefinition;
  readonly log?: Logger | undefined;
};

export type Service = {
  /** Resolves when the service handles messages. While the broker or the database is unavailable, it waits: alive, not ready. */
  readonly start: () => Promise<void>;
  /** True when every step succeeded within the deadline. May be called during the start. */
  readonly stop: () => Promise<boolean>;
  /** Base URL of its probes; empty before they listen. */
  readonly address: () => string;
};

/** How long the database takes to answer; undefined when it does not. */
const pingMs = async (mongo: MongoHandle): Promise<number | undefined> => {
  const begun = performance.now();
  return (await mongo.ping()) ? Math.round((performance.now() - begun) * 10) / 10 : undefined;
};

/** Starts and stops a service that handles messages of the bus and owns a database. */
export const createService = (options: ServiceOptions): Service => {
  const { name, config, drainMs, assemble } = options;
  const { HERALD_HOST: host, HERALD_PORT: port, HERALD_METRICS_PORT: metricsPort, HERALD_MONGO_URL: url } = config;
  const log = options.log ?? createLogger({ service: name, level: config.HERALD_LOG_LEVEL });
  const lifecycle = createLifecycle({ log, deadlineMs: stopDeadlineMs });
  const proxy = proxyAddressOf(config);
  let address = "";

  const start = async (): Promise<void> => {
    if (proxy !== undefined) log.info({ proxy }, "servers elsewhere are reached through a proxy");
    const telemetry = await startTelemetry({
      service: name,
      metricsHost: config.HERALD_METRICS_HOST ?? host,
      metricsPort,
      otlpEndpoint: config.OTEL_EXPORTER_OTLP_ENDPOINT,
    });
    const mongo = connectMongo({ url, database: databaseOf(config, name), appName: `herald-${name}`, log });
    let bus: Bus | undefined;
    let parts: ServiceDefinition | undefined;
    let begun: ReturnType<ServiceDefinition["begin"]> = [];
    let consuming: Consuming | undefined;
    let measuring: Measuring | undefined;
    let reporting: ReturnType<typeof reportStatus> | undefined;
    let stopping = false;

    const health = createHealth({
      bus: () => busReady(bus),
      consumers: () => consuming?.ready() || "durables are missing; run the bootstrap step, which creates them",
      database: async () => (await mongo.ping()) || "the database is unavailable",
      // The database is prepared only after the bus is connected.
      indexes: () => (parts !== undefined && mongo.prepared()) || "the indexes are not created yet",
    });
    const http = await startHealthServer(health, log, { host, port });
    address = http.address;

    // Registered before the start waits for anything, so that a stop ends the wait.
    lifecycle.onStop("readiness", health.shuttingDown);
    lifecycle.onStop("consumers", async () => {
      stopping = true;
      parts?.closeGates?.();
      await consuming?.stop(drainMs);
    });
    lifecycle.onStop("parts", async () => {
      for (const together of begun) await Promise.all(together.map((each) => each.stop()));
    });
    lifecycle.onStop("measuring", async () => measuring?.stop());
    lifecycle.onStop("status", async () => reporting?.stop());
    lifecycle.onStop("http", () => http.stop(finishProbesMs));
    lifecycle.onStop("bus", async () => bus && closeBus(bus));
    lifecycle.onStop("database", mongo.close);
    lifecycle.onStop("telemetry", telemetry.stop);

    const look = async (): Promise<Awaited<ReturnType<StatusReportOptions["look"]>>> => {
      const [databaseMs, own] = await Promise.all([
        pingMs(mongo),
        // The failing checks name an unavailable database already.
        parts?.status?.().catch(() => undefined),
      ]);
      return {
        ...(databaseMs !== undefined && { databaseMs }),
        ...(measuring?.latest() ?? { streams: [], durables: [] }),
        ...own,
      };
    };

    const run = async () => {
      bus = await connectBus({ ...serviceAccess(config, name), log });
      // Before the database is prepared, so that the status page shows that the service waits for it, and why.
      reporting = reportStatus(bus, { service: name, failing: health.failing, keys: keyIdsOf(config), proxy, look });
      parts = assemble({ bus, db: mongo.db, log });
      await mongo.prepare("indexes", parts.prepare);
      if (stopping) return;
      begun = parts.begin();
      // Before the first message is handled, so that it detects messages that were lost until then.
      measuring = measureQueues(bus, name, { positions: createPositionStore(mongo.db) });
      consuming = await consume(bus, parts.handlers);
    };
    await run().catch((error: unknown) => {
      // A stop closes connections that the start still uses.
      if (!stopping) throw error;
    });
  };

  return { start, stop: () => lifecycle.stop("asked to stop"), address: () => address };
};
