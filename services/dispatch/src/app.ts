import {
  type Bus,
  busStatus,
  type Consuming,
  closeBus,
  connectBus,
  consume,
  consumersReady,
  serviceAccess,
} from "@herald/bus";
import { createHealth, createLifecycle, createLogger, startHealthServer, startTelemetry } from "@herald/kit";
import { connectMongo } from "@herald/mongo";
import { assemble, type Overrides } from "./assemble.ts";
import type { DispatchConfig } from "./config.ts";

/** How long a stop may take in all; a batch whose provider is slow gets the greater part of it. */
const stopDeadlineMs = 30_000;
const drainMs = 25_000;

/** Dispatch, put together. `start` resolves when it listens; it waits for a broker and a database that are away. */
export const createApp = (config: DispatchConfig, overrides: Overrides = {}) => {
  const log = createLogger({ service: "dispatch", level: config.HERALD_LOG_LEVEL });
  const lifecycle = createLifecycle({ log, deadlineMs: stopDeadlineMs });
  let address = "";
  return {
    start: async (): Promise<void> => {
      const telemetry = await startTelemetry({
        service: "dispatch",
        version: "0.1.0",
        metricsHost: config.HERALD_DISPATCH_HOST,
        metricsPort: config.HERALD_DISPATCH_METRICS_PORT,
        otlpEndpoint: config.OTEL_EXPORTER_OTLP_ENDPOINT,
      });
      const mongo = connectMongo({
        url: config.HERALD_MONGO_URL,
        database: config.HERALD_DISPATCH_DATABASE,
        appName: "herald-dispatch",
        log,
      });
      let bus: Bus | undefined;
      let consuming: Consuming | undefined;
      const health = createHealth({
        bus: () => (bus !== undefined && busStatus(bus).connected) || "NATS is away",
        database: async () => (await mongo.ping()) || "the database is away",
        indexes: () => mongo.prepared() || "the indexes are not made yet",
        consumers: () => (consuming !== undefined && consumersReady(consuming)) || "not every durable is there",
      });
      const http = await startHealthServer({
        health,
        log,
        host: config.HERALD_DISPATCH_HOST,
        port: config.HERALD_DISPATCH_PORT,
      });
      address = http.address;

      bus = await connectBus({ ...serviceAccess(config, "dispatch"), log });
      const connected = bus;
      const parts = assemble(config, { bus: connected, db: mongo.db, log, ...overrides });
      let stopping = false;
      // Every query names its index, so nothing begins before they are there.
      void mongo.prepare("indexes", parts.prepare).then(async () => {
        if (stopping) return;
        parts.begin();
        consuming = await consume(connected, parts.handlers);
      });

      lifecycle.onStop("readiness", health.shuttingDown);
      lifecycle.onStop("consumers", async () => {
        stopping = true;
        parts.closeGates();
        await consuming?.stop(drainMs);
      });
      lifecycle.onStop("parts", parts.stop);
      lifecycle.onStop("http", () => http.stop(1_000));
      lifecycle.onStop("bus", () => closeBus(connected));
      lifecycle.onStop("database", mongo.close);
      lifecycle.onStop("telemetry", telemetry.stop);
    },
    stop: (): Promise<boolean> => lifecycle.stop("asked to"),
    /** Where its probes are, as a base URL; empty before it was started. */
    address: (): string => address,
  };
};
