import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { monitorEventLoopDelay, performance } from "node:perf_hooks";
import { context, type Meter, metrics, propagation, trace } from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import {
  getNumberFromEnv,
  getStringFromEnv,
  getStringListFromEnv,
  W3CTraceContextPropagator,
} from "@opentelemetry/core";
import { PrometheusExporter } from "@opentelemetry/exporter-prometheus";
import { defaultResource, envDetector, type Resource, resourceFromAttributes } from "@opentelemetry/resources";
import { type IMetricReader, MeterProvider, PeriodicExportingMetricReader } from "@opentelemetry/sdk-metrics";
import { AlwaysOffSampler, NoopSpanProcessor, ParentBasedSampler, TracerProvider } from "@opentelemetry/sdk-trace";
import { listen } from "../listen.ts";
import { withTimeout } from "../request-context.ts";
import { version } from "../version.ts";
import { meter } from "./spans.ts";

export type TelemetryOptions = {
  readonly service: string;
  readonly metricsHost: string;
  /** 0 takes any free port. */
  readonly metricsPort: number;
  /** The collector's base URL, as in OTEL_EXPORTER_OTLP_ENDPOINT: `/v1/traces` is added. */
  readonly otlpEndpoint?: string | undefined;
};

/** An unavailable collector, and the exporter's retries, must not delay a stop. */
const flushMs = 2_000;

/** Starts OpenTelemetry's SDK as its variables (`OTEL_…`) configure it; they add to the resource and take precedence. */
const startProviders = async ({ service, otlpEndpoint }: TelemetryOptions) => {
  const resource = defaultResource().merge(
    resourceFromAttributes({ "service.name": `herald-${service}`, "service.version": version }),
  );
  const exporter = new PrometheusExporter({ preventServerStart: true, withoutScopeInfo: true });
  // biome-ignore lint/style/noProcessEnv: the SDK reads its variables itself, whatever the schemas know of them
  const env = process.env;
  // It may have come from a file.
  env.OTEL_EXPORTER_OTLP_ENDPOINT = otlpEndpoint ?? "";
  const configured = Object.entries(env).some(([name, value]) => name.startsWith("OTEL_") && value);
  const sdk = configured ? await startNodeSdk(resource, exporter) : startUnconfigured(resource, exporter);
  const unobserve = observeProcess();
  return {
    exporter,
    stop: async () => {
      unobserve();
      await withTimeout(flushMs, sdk.shutdown());
      for (const api of [trace, metrics, propagation, context]) api.disable();
    },
  };
};

/** OpenTelemetry's globals belong to the process, so services in one process, as in tests, share its providers. */
let shared: { providers: ReturnType<typeof startProviders>; users: number } | undefined;

/**
 * Starts traces and metrics, configured by OpenTelemetry's variables, and serves `/metrics` for Prometheus on its own port. Traces leave
 * the process only if an endpoint or an exporter is configured; incoming traces are always continued.
 */
export const startTelemetry = async (options: TelemetryOptions) => {
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
    await listen(server, { port: options.metricsPort, host: options.metricsHost, variable: "HERALD_METRICS_PORT" });
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

type Sdk = { readonly shutdown: () => Promise<unknown> };

/** Records nothing: spans cost almost nothing and still propagate ids, and a caller's sampling decision is kept. */
const unrecorded = () => ({
  spanProcessors: [new NoopSpanProcessor()],
  sampler: new ParentBasedSampler({ root: new AlwaysOffSampler() }),
});

/**
 * Whether traces leave the process; known once telemetry has started. Without configuration, OpenTelemetry's default is a collector on this
 * machine; Herald's default is to export nothing.
 */
export const exportsTraces = (): boolean => {
  const exporter = getStringFromEnv("OTEL_TRACES_EXPORTER");
  if (exporter !== undefined) return exporter !== "none";
  return ["OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"].some((name) => getStringFromEnv(name));
};

/** The SDK ignores OTEL_METRICS_EXPORTER when it gets a reader, and `/metrics` always needs one. */
const pushedMetrics = async (): Promise<IMetricReader[]> => {
  if (!getStringListFromEnv("OTEL_METRICS_EXPORTER")?.includes("otlp")) return [];
  const { OTLPMetricExporter } = await import("@opentelemetry/exporter-metrics-otlp-proto");
  const exportIntervalMillis = getNumberFromEnv("OTEL_METRIC_EXPORT_INTERVAL") ?? 60_000;
  const timeout = getNumberFromEnv("OTEL_METRIC_EXPORT_TIMEOUT") ?? 30_000;
  const exportTimeoutMillis = Math.min(timeout, exportIntervalMillis);
  return [
    new PeriodicExportingMetricReader({
      exporter: new OTLPMetricExporter(),
      exportIntervalMillis,
      exportTimeoutMillis,
    }),
  ];
};

/** No baggage: up to 8 KiB of an untrusted header would be sent with every message of the request. */
const propagator = () => new W3CTraceContextPropagator();

const startNodeSdk = async (resource: Resource, reader: IMetricReader): Promise<Sdk> => {
  const { NodeSDK } = await import("@opentelemetry/sdk-node");
  const sdk = new NodeSDK({
    resource,
    metricReaders: [reader, ...(await pushedMetrics())],
    // The other detectors expose the machine and the command line.
    ...(getStringFromEnv("OTEL_NODE_RESOURCE_DETECTORS") ? {} : { resourceDetectors: [envDetector] }),
    ...(getStringFromEnv("OTEL_PROPAGATORS") ? {} : { textMapPropagator: propagator() }),
    ...(getStringFromEnv("OTEL_LOGS_EXPORTER") ? {} : { logRecordProcessors: [] }),
    ...(exportsTraces() ? {} : unrecorded()),
  });
  sdk.start();
  return sdk;
};

/** The result of `startNodeSdk` without any variable, but without the 13 MB of its exporters. */
const startUnconfigured = (resource: Resource, reader: IMetricReader): Sdk => {
  const providers = {
    meter: new MeterProvider({ resource, readers: [reader] }),
    tracer: new TracerProvider({ resource, ...unrecorded() }),
  };
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  propagation.setGlobalPropagator(propagator());
  metrics.setGlobalMeterProvider(providers.meter);
  trace.setGlobalTracerProvider(providers.tracer);
  return { shutdown: () => Promise.all([providers.tracer.shutdown(), providers.meter.shutdown()]) };
};

/** Fine enough to show a stall, coarse enough to cost nothing. */
const resolutionMs = 10;
const nanoseconds = 1e9;
const microseconds = 1e6;

/** CPU, memory and event loop of this process, read on each scrape. Returns the function that stops it. */
const observeProcess = (): (() => void) => {
  const herald = meter();
  const delay = monitorEventLoopDelay({ resolution: resolutionMs });
  delay.enable();
  let utilization = performance.eventLoopUtilization();
  const gauge = (name: string, description: string) => herald.createObservableGauge(name, { description });
  const cpu = herald.createObservableCounter("process_cpu_seconds", { description: "CPU seconds, user and system" });
  const memory = gauge("process_resident_memory_bytes", "Resident memory");
  const heap = gauge("nodejs_heap_used_bytes", "Live and dead objects of the JavaScript heap");
  const external = gauge("nodejs_external_memory_bytes", "Buffers outside of the heap");
  // Not one metric with the label `quantile`, which Prometheus reserves for summaries: a scrape starts these over.
  const late = (name: string, which: string) =>
    gauge(`nodejs_eventloop_delay_${name}_seconds`, `How late timers are, since the last reading: ${which}`);
  const median = late("p50", "the median");
  const high = late("p99", "99 of 100 are less late");
  const highest = late("max", "the latest one");
  const busy = gauge("nodejs_eventloop_utilization_ratio", "Share of time spent in JavaScript, since the last reading");
  const uptime = gauge("process_uptime_seconds", "Seconds since the process began");
  const observables = [cpu, memory, heap, external, median, high, highest, busy, uptime];
  const observe: Parameters<Meter["addBatchObservableCallback"]>[0] = (result) => {
    const used = process.memoryUsage();
    const { user, system } = process.cpuUsage();
    result.observe(cpu, user / microseconds, { mode: "user" });
    result.observe(cpu, system / microseconds, { mode: "system" });
    result.observe(memory, used.rss);
    result.observe(heap, used.heapUsed);
    result.observe(external, used.external);
    result.observe(median, delay.percentile(50) / nanoseconds);
    result.observe(high, delay.percentile(99) / nanoseconds);
    result.observe(highest, delay.max / nanoseconds);
    delay.reset();
    const now = performance.eventLoopUtilization();
    result.observe(busy, performance.eventLoopUtilization(now, utilization).utilization);
    utilization = now;
    result.observe(uptime, process.uptime());
  };
  herald.addBatchObservableCallback(observe, observables);
  return () => {
    herald.removeBatchObservableCallback(observe, observables);
    delay.disable();
  };
};
