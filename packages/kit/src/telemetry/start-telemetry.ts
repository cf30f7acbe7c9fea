import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { context, metrics, propagation, trace } from "@opentelemetry/api";
import { PrometheusExporter } from "@opentelemetry/exporter-prometheus";
import { defaultResource, resourceFromAttributes } from "@opentelemetry/resources";
import { observeProcess } from "./process-metrics.ts";
import { meter } from "./spans.ts";
import { startSdk } from "./start-sdk.ts";

export type TelemetryOptions = {
  readonly service: string;
  readonly version: string;
  readonly metricsHost: string;
  /** 0 takes any free port. */
  readonly metricsPort: number;
  /** The collector's base URL, as in OTEL_EXPORTER_OTLP_ENDPOINT: `/v1/traces` is added. */
  readonly otlpEndpoint?: string | undefined;
};

/** A collector that is unavailable, and the exporter's patience with it, must not hold up a stop. */
const flushMs = 2_000;

type Providers = { readonly exporter: PrometheusExporter; readonly stop: () => Promise<void> };

const startProviders = async ({ service, version, otlpEndpoint }: TelemetryOptions): Promise<Providers> => {
  const resource = defaultResource().merge(
    resourceFromAttributes({ "service.name": `herald-${service}`, "service.version": version }),
  );
  const exporter = new PrometheusExporter({ preventServerStart: true, withoutScopeInfo: true });
  const sdk = await startSdk(resource, exporter, otlpEndpoint);
  const unobserve = observeProcess(meter());
  return {
    exporter,
    stop: async () => {
      unobserve();
      await Promise.race([sdk.shutdown().catch(() => undefined), sleep(flushMs, undefined, { ref: false })]);
      for (const api of [trace, metrics, propagation, context]) api.disable();
    },
  };
};

/** OpenTelemetry's globals belong to the process, so services that share one, as in tests, share its providers. */
let shared: { providers: Promise<Providers>; users: number } | undefined;

const listen = (server: Server, host: string, port: number): Promise<void> =>
  new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, () => resolve());
  });

/**
 * Starts traces and metrics, configured by OpenTelemetry's variables, and serves `/metrics` for Prometheus on a port of its own.
 * Traces leave the process only where an endpoint or an exporter is given; incoming ones are continued in any case.
 */
export const startTelemetry = async (
  options: TelemetryOptions,
): Promise<{ metricsPort: number; stop: () => Promise<void> }> => {
  shared ??= { providers: startProviders(options), users: 0 };
  shared.users++;
  const providers = await shared.providers;
  const release = async () => {
    if (!shared || --shared.users > 0) return;
    shared = undefined;
    await providers.stop();
  };
  const server = createServer((request, response) => {
    if (request.method === "GET" && request.url?.split("?", 1)[0] === "/metrics")
      providers.exporter.getMetricsRequestHandler(request, response);
    else response.writeHead(404).end();
  });
  try {
    await listen(server, options.metricsHost, options.metricsPort);
  } catch (error) {
    await release();
    throw error;
  }
  return {
    metricsPort: (server.address() as AddressInfo).port,
    stop: async () => {
      await new Promise((resolve) => {
        server.close(resolve);
        server.closeAllConnections();
      });
      await release();
    },
  };
};
