import {
  areConsumersReady,
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
  type Logger,
  type logConfig,
  type mongoConfig,
  type natsConfig,
  startHealthServer,
  startTelemetry,
  type telemetryConfig,
} from "@herald/kit";
import { connectMongo, createPositionStore, type MongoHandle } from "@herald/mongo";
import type { z } from "zod";

/** How long a stop may take in all: Kubernetes kills after 30 s unless it is told otherwise. */
const stopDeadlineMs = 30_000;
/** A probe that is being answered gets this long to end. */
const finishProbesMs = 1_000;
/** Herald's version: all its packages have the same. */
const version = "0.1.0";

/** The environment variables that every service with a database has. */
export type ServiceConfig = z.infer<
  z.ZodObject<typeof natsConfig & typeof mongoConfig & typeof logConfig & typeof telemetryConfig>
>;

/** What a service stands on. */
export type ServiceDeps = { readonly bus: Bus; readonly db: MongoHandle["db"]; readonly log: Logger };

/** A service without its start and stop. */
export type ServiceDefinition = {
  /** What the database must have before anything begins: every query names its index. Repeatable. */
  readonly prepare: () => Promise<void>;
  /** What takes messages, once the database is prepared. */
  readonly handlers: readonly Handler[];
  /**
   * Begins what answers questions and what works by itself, before the first message is taken. Gives what ends all of it:
   * called when no message is being handled any more, before the bus and the database are closed.
   */
  readonly begin: () => () => Promise<void>;
  /** What the operator's status shows of it, beside its readiness. */
  readonly status?: () => Promise<Pick<StatusReport, "providers">>;
  /** The first step of a stop: waiting work gets no more turns. */
  readonly closeGates?: () => void;
};

export type ServiceOptions = {
  readonly name: "registry" | "dispatch" | "analytics";
  readonly config: ServiceConfig;
  /** Where its probes and its metrics listen. */
  readonly host: string;
  readonly port: number;
  readonly metricsPort: number;
  /** The one database that it owns. */
  readonly database: string;
  /** How long messages that are being handled may take to end once it stops: the greater part of the 30 s in all. */
  readonly drainMs: number;
  readonly assemble: (ground: ServiceDeps) => ServiceDefinition;
  readonly log?: Logger | undefined;
};

export type Service = {
  /** Resolves when it takes messages. Waits, alive and not ready, for a broker and a database that are unavailable. */
  readonly start: () => Promise<void>;
  /** True when all of it went well within the deadline. Also while it still starts. */
  readonly stop: () => Promise<boolean>;
  /** Where its probes listen, as a base URL; empty before that. */
  readonly address: () => string;
};

/** How long the database takes to answer; undefined when it does not. */
const pingMs = async (mongo: MongoHandle): Promise<number | undefined> => {
  const begun = performance.now();
  return (await mongo.ping()) ? Math.round((performance.now() - begun) * 10) / 10 : undefined;
};

/** The start and the stop of a service that takes messages from the bus and owns a database. */
export const createService = (options: ServiceOptions): Service => {
  const { name, config, host, port, metricsPort, database, drainMs, assemble } = options;
  const log = options.log ?? createLogger({ service: name, level: config.HERALD_LOG_LEVEL });
  const lifecycle = createLifecycle({ log, deadlineMs: stopDeadlineMs });
  let address = "";

  const start = async (): Promise<void> => {
    const telemetry = await startTelemetry({
      service: name,
      version,
      metricsHost: host,
      metricsPort,
      otlpEndpoint: config.OTEL_EXPORTER_OTLP_ENDPOINT,
    });
    const mongo = connectMongo({ url: config.HERALD_MONGO_URL, database, appName: `herald-${name}`, log });
    let bus: Bus | undefined;
    let parts: ServiceDefinition | undefined;
    let end: (() => Promise<void>) | undefined;
    let consuming: Consuming | undefined;
    let measuring: Measuring | undefined;
    let reporting: ReturnType<typeof reportStatus> | undefined;
    let stopping = false;

    const health = createHealth({
      bus: () => busReady(bus),
      consumers: () =>
        (consuming !== undefined && areConsumersReady(consuming)) ||
        "not every durable is there; the bootstrap step makes them",
      database: async () => (await mongo.ping()) || "the database is unavailable",
      // Nothing is asked of it to prepare before the bus is there.
      indexes: () => (parts !== undefined && mongo.prepared()) || "the indexes are not made yet",
    });
    const http = await startHealthServer({ health, log, host, port });
    address = http.address;

    // Before the waiting begins, so that a stop ends it.
    lifecycle.onStop("readiness", health.shuttingDown);
    lifecycle.onStop("consumers", async () => {
      stopping = true;
      parts?.closeGates?.();
      await consuming?.stop(drainMs);
    });
    lifecycle.onStop("parts", async () => end?.());
    lifecycle.onStop("measuring", async () => measuring?.stop());
    lifecycle.onStop("status", async () => reporting?.stop());
    lifecycle.onStop("http", () => http.stop(finishProbesMs));
    lifecycle.onStop("bus", async () => bus && closeBus(bus));
    lifecycle.onStop("database", mongo.close);
    lifecycle.onStop("telemetry", telemetry.stop);

    const look = async (): Promise<Awaited<ReturnType<StatusReportOptions["look"]>>> => {
      const [{ failing }, databaseMs, own] = await Promise.all([
        health.ready(),
        pingMs(mongo),
        // A database that is unavailable is among what fails.
        parts?.status?.().catch(() => undefined),
      ]);
      return {
        failing: [...failing],
        ...(databaseMs !== undefined && { databaseMs }),
        ...(measuring?.latest() ?? { streams: [], durables: [] }),
        ...own,
      };
    };

    const run = async () => {
      bus = await connectBus({ ...serviceAccess(config, name), log });
      // Before the database is prepared: a service that waits for it is listed, with the reason.
      reporting = reportStatus(bus, { service: name, version, look });
      parts = assemble({ bus, db: mongo.db, log });
      await mongo.prepare("indexes", parts.prepare);
      if (stopping) return;
      end = parts.begin();
      // Before the first message is taken, so that what was gone by then is seen.
      measuring = measureQueues(bus, name, { positions: createPositionStore(mongo.db) });
      consuming = await consume(bus, parts.handlers);
    };
    await run().catch((error: unknown) => {
      // What was closed under it is no fault.
      if (!stopping) throw error;
    });
  };

  return { start, stop: () => lifecycle.stop("asked to"), address: () => address };
};
