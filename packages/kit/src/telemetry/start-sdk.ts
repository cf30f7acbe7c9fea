import { context, metrics, propagation, trace } from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import {
  getNumberFromEnv,
  getStringFromEnv,
  getStringListFromEnv,
  W3CTraceContextPropagator,
} from "@opentelemetry/core";
import { envDetector, type Resource } from "@opentelemetry/resources";
import { type IMetricReader, MeterProvider, PeriodicExportingMetricReader } from "@opentelemetry/sdk-metrics";
import { AlwaysOffSampler, NoopSpanProcessor, ParentBasedSampler, TracerProvider } from "@opentelemetry/sdk-trace";

type Sdk = { readonly shutdown: () => Promise<unknown> };

/** Records nothing: spans cost next to nothing and still propagate ids; a caller's sampling decision is followed. */
const unrecorded = () => ({
  spanProcessors: [new NoopSpanProcessor()],
  sampler: new ParentBasedSampler({ root: new AlwaysOffSampler() }),
});

/**
 * Whether traces leave the process; known once telemetry has started. Where nothing is named, OpenTelemetry's own default is a collector
 * on this machine, Herald's is that nothing leaves.
 */
export const exportsTraces = (): boolean => {
  const exporter = getStringFromEnv("OTEL_TRACES_EXPORTER");
  if (exporter !== undefined) return exporter !== "none";
  return ["OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"].some((name) => getStringFromEnv(name));
};

/** The SDK reads OTEL_METRICS_EXPORTER only where it is given no reader, and `/metrics` is always one. */
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

/** No baggage: what a stranger's header says, up to 8 KiB of it, would travel with every message of the request. */
const propagator = () => new W3CTraceContextPropagator();

const startNodeSdk = async (resource: Resource, reader: IMetricReader): Promise<Sdk> => {
  const { NodeSDK } = await import("@opentelemetry/sdk-node");
  const sdk = new NodeSDK({
    resource,
    metricReaders: [reader, ...(await pushedMetrics())],
    // The others tell of the machine and of the command line.
    ...(getStringFromEnv("OTEL_NODE_RESOURCE_DETECTORS") ? {} : { resourceDetectors: [envDetector] }),
    ...(getStringFromEnv("OTEL_PROPAGATORS") ? {} : { textMapPropagator: propagator() }),
    ...(getStringFromEnv("OTEL_LOGS_EXPORTER") ? {} : { logRecordProcessors: [] }),
    ...(exportsTraces() ? {} : unrecorded()),
  });
  sdk.start();
  return sdk;
};

/** What `startNodeSdk` comes to without any variable, and without the 13 MB that its exporters hold. */
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

/**
 * Starts OpenTelemetry's SDK as its variables (`OTEL_…`) say, with `reader` beside whatever they name. `resource` is what is
 * known of the process; variables add to it and win. `endpoint` is OTEL_EXPORTER_OTLP_ENDPOINT, which may have come from a file.
 */
export const startSdk = async (
  resource: Resource,
  reader: IMetricReader,
  endpoint: string | undefined,
): Promise<Sdk> => {
  // biome-ignore lint/style/noProcessEnv: the SDK reads its variables itself, whatever the schemas know of them
  const env = process.env;
  env.OTEL_EXPORTER_OTLP_ENDPOINT = endpoint ?? "";
  return Object.entries(env).some(([name, value]) => name.startsWith("OTEL_") && value)
    ? startNodeSdk(resource, reader)
    : startUnconfigured(resource, reader);
};
