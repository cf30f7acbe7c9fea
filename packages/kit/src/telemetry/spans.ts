import {
  type Attributes,
  type Context,
  context,
  type Histogram,
  isSpanContextValid,
  type Link,
  metrics,
  type Span,
  SpanKind,
  SpanStatusCode,
  TraceFlags,
  trace,
} from "@opentelemetry/api";

const scope = "herald";

/** Herald's tracer. Works before telemetry starts too: its spans then go nowhere. */
export const tracer = () => trace.getTracer(scope);

/**
 * Herald's meter. Instruments made before telemetry starts count nothing: make them in `createApp`, or lazily. Names are those of
 * OpenTelemetry's conventions, or Herald's own with their unit, such as `herald.push.seconds`: the Prometheus exporter adds none.
 */
export const meter = () => metrics.getMeter(scope);

/** From an acknowledged publish to a provider's timeout. OpenTelemetry's own bounds are for milliseconds: every second would be "below 5". */
const boundsInSeconds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

/** A histogram of seconds: its name ends in `seconds` or is a convention's, as `http.server.request.duration`. The same rule as for every instrument says when to make it. */
export const secondsHistogram = (name: string, description: string): Histogram =>
  meter().createHistogram(name, { description, unit: "s", advice: { explicitBucketBoundaries: boundsInSeconds } });

export type SpanOptions = {
  readonly kind?: "internal" | "server" | "client" | "producer" | "consumer";
  /** Low in cardinality, and never a token, a title, a body or a query. */
  readonly attributes?: Attributes;
  readonly links?: Link[];
  /** The context that it continues; the active one by default. */
  readonly parent?: Context;
};

const kinds = {
  internal: SpanKind.INTERNAL,
  server: SpanKind.SERVER,
  client: SpanKind.CLIENT,
  producer: SpanKind.PRODUCER,
  consumer: SpanKind.CONSUMER,
} as const;

/** Marks a span as failed. Says the kind of error, not its words: those may quote what a stranger sent. */
export const failSpan = (span: Span, error: unknown): void => {
  const code =
    error instanceof Error ? ("code" in error && typeof error.code === "string" ? error.code : error.name) : "unknown";
  span.setAttribute("error.type", code);
  span.setStatus({ code: SpanStatusCode.ERROR });
};

/** Runs a function inside a span of that name, which ends with it; what it throws marks the span and is thrown on. */
export const inSpan = async <T>(name: string, options: SpanOptions, fn: (span: Span) => T | Promise<T>): Promise<T> => {
  const { kind = "internal", attributes, links, parent = context.active() } = options;
  const above = trace.getSpanContext(parent);
  if (above !== undefined && isSpanContextValid(above) && (above.traceFlags & TraceFlags.SAMPLED) === 0) {
    // This trace is not recorded, so a span of its own would only cost: the caller's context is passed on.
    const unrecorded = trace.wrapSpanContext(above);
    return parent === context.active() ? fn(unrecorded) : context.with(parent, () => fn(unrecorded));
  }
  const span = tracer().startSpan(
    name,
    { kind: kinds[kind], ...(attributes ? { attributes } : {}), ...(links ? { links } : {}) },
    parent,
  );
  try {
    return await context.with(trace.setSpan(parent, span), () => fn(span));
  } catch (error) {
    failSpan(span, error);
    throw error;
  } finally {
    span.end();
  }
};

/** A client span below the active one, to be ended by the caller; undefined where that is not recorded. */
export const startClientSpan = (name: string, attributes: Attributes): Span | undefined =>
  trace.getActiveSpan()?.isRecording() ? tracer().startSpan(name, { kind: SpanKind.CLIENT, attributes }) : undefined;
