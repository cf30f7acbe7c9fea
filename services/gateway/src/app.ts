import type { IncomingMessage } from "node:http";
import { join } from "node:path";
import type { Bus } from "@herald/bus";
import {
  clientAddress,
  createHttpApp,
  createLifecycle,
  createLogger,
  createMemoryLimit,
  type HttpServer,
  type Logger,
  startHttp,
  startTelemetry,
} from "@herald/kit";
import type { GatewayConfig } from "./config.ts";
import { createRouteDeps, type GatewayOverrides } from "./deps.ts";
import { registerLoadMetrics, serveGateway } from "./http/http-routes.ts";
import { readerOf } from "./http/record-change.ts";
import type { Route } from "./http/route.ts";
import { builtConsole } from "./http/serve-console.ts";
import { builtDocs } from "./http/serve-docs.ts";
import { serveRoute } from "./http/serve-route.ts";
import { allRoutes, publicRoutes } from "./routes/all-routes.ts";

/** Requests in flight get 15 s to finish and the whole stop 25 s: Kubernetes kills after 30 s. */
const finishRequestsMs = 15_000;
const stopDeadlineMs = 25_000;

/** The gateway: serves HTTP, talks to the bus, stores nothing. */
export const createApp = (
  config: GatewayConfig,
  {
    log = createLogger({ service: "gateway", level: config.HERALD_LOG_LEVEL }),
    documents = builtDocs,
    ...overrides
  }: GatewayOverrides & { readonly log?: Logger; readonly documents?: string } = {},
) => {
  const lifecycle = createLifecycle({ log, deadlineMs: stopDeadlineMs });
  const { routes: deps, ...own } = createRouteDeps(config, { log, ...overrides });
  const { limits, fixed, health, connection, replicas, groupsFile, eventStreams, exportStreams } = own;

  const { HERALD_GATEWAY_TRUST_PROXY: publicProxies, HERALD_GATEWAY_ADMIN_PORT: adminPort } = config;
  const adminProxies = adminPort === undefined ? publicProxies : config.HERALD_GATEWAY_ADMIN_TRUST_PROXY;
  const memory = createMemoryLimit({
    maxBytes: fixed.bodyBytes,
    maxPerAddress: fixed.addressBodyBytes,
  });
  const connectionLimit = (proxies: number) => ({
    max: config.HERALD_GATEWAY_LIMIT_CONNECTIONS,
    maxPerAddress: proxies === 0 ? fixed.addressConnections : undefined,
  });
  /** Serves the routes, the documents and the probes on one port; with `console`, its folder, the console too. */
  const portApp = (routes: readonly Route[], proxies: number, withoutOperators: boolean, console?: string) => {
    const count = (request: IncomingMessage) => limits.countAnonymous(clientAddress(request, proxies));
    const edge = { proxies, memory, withoutOperators };
    const served = routes.map((route) => serveRoute(route, deps, { ...edge, reader: readerOf(route, allRoutes) }));
    const docs = join(documents, withoutOperators ? "public" : "all");
    return createHttpApp(log, serveGateway(served, health.routes, count, { docs, console }));
  };
  const everything = portApp(allRoutes, adminProxies, false, config.HERALD_GATEWAY_CONSOLE ? builtConsole : undefined);
  const startReplicas = (bus: Bus) => {
    for (const replica of replicas) replica.start(bus);
  };

  let server: HttpServer | undefined;
  let adminServer: HttpServer | undefined;
  return {
    start: async (): Promise<void> => {
      await groupsFile.start();
      const telemetry = await startTelemetry({
        service: "gateway",
        metricsHost: config.HERALD_METRICS_HOST ?? config.HERALD_HOST,
        metricsPort: config.HERALD_METRICS_PORT,
        otlpEndpoint: config.OTEL_EXPORTER_OTLP_ENDPOINT,
      });
      const listening = await startHttp(
        adminPort === undefined ? everything : portApp(publicRoutes, publicProxies, true),
        {
          host: config.HERALD_HOST,
          port: config.HERALD_PORT,
          limit: connectionLimit(publicProxies),
        },
      );
      server = listening;
      // The admin port has its own connection limit, so that clients cannot lock operators out.
      if (adminPort !== undefined)
        adminServer = await startHttp(everything, {
          host: config.HERALD_GATEWAY_ADMIN_HOST,
          port: adminPort,
          variable: "HERALD_GATEWAY_ADMIN_PORT",
          limit: connectionLimit(adminProxies),
        });
      const unobserve = registerLoadMetrics(
        { now: listening.connections, limit: config.HERALD_GATEWAY_LIMIT_CONNECTIONS },
        { now: memory.used, limit: fixed.bodyBytes },
      );
      connection.start(startReplicas);
      lifecycle.onStop("readiness", health.shuttingDown);
      lifecycle.onStop("event streams", eventStreams.stop);
      lifecycle.onStop("exports", exportStreams.stop);
      lifecycle.onStop("http", async () => {
        await Promise.all([listening.stop(finishRequestsMs), adminServer?.stop(finishRequestsMs)]);
      });
      lifecycle.onStop("replicas", async () => {
        await Promise.all(replicas.map((replica) => replica.stop()));
      });
      lifecycle.onStop("groups file", async () => groupsFile.stop());
      lifecycle.onStop("bus", connection.stop);
      lifecycle.onStop("telemetry", async () => {
        unobserve();
        await telemetry.stop();
      });
      if (adminServer === undefined)
        log.info(
          { address: listening.address },
          "listening; one port serves apps and operators, because HERALD_GATEWAY_ADMIN_PORT is not set",
        );
      else log.info({ address: listening.address, admin: adminServer.address }, "listening");
    },
    stop: () => lifecycle.stop("asked to stop"),
    /** The base URL of the public port. Throws before start. */
    address: (): string => {
      if (server === undefined) throw new Error("the gateway is not started");
      return server.address;
    },
    /** The base URL for operators: the admin port's, or the only one. */
    adminAddress: (): string | undefined => (adminServer ?? server)?.address,
  };
};
