import {
  type Attributes,
  type Context,
  context,
  type Histogram,
  isSpanContextValid,
  metrics,
  type Span,
  SpanKind,
  SpanStatusCode,
  TraceFlags,
  trace,
} from "@opentelemetry/api";

const scope = "herald";

/** Herald's tracer. It also works before telemetry starts, but then drops its spans. */
export const tracer = () => trace.getTracer(scope);

/**
 * Herald's meter. Instruments created before telemetry starts count nothing: create them in `createApp`, or lazily. Names follow
 * OpenTelemetry's conventions, or are Herald's own with their unit, such as `herald.push.seconds`: the Prometheus exporter adds no unit.
 */
export const meter = () => metrics.getMeter(scope);

/** From an acknowledged publish to a provider's timeout. OpenTelemetry's default bounds are for milliseconds: most times fall below 5. */
const boundsInSeconds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

/** A histogram of seconds, named `…seconds` or by a convention, as `http.server.request.duration`. Create it when {@link meter} says. */
export const secondsHistogram = (name: string, description: string): Histogram =>
  meter().createHistogram(name, { description, unit: "s", advice: { explicitBucketBoundaries: boundsInSeconds } });

export type SpanOptions = {
  readonly kind?: keyof typeof kinds;
  /** Low in cardinality, and never a token, a title, a body or a query. */
  readonly attributes?: Attributes;
  /** The parent context; the active one by default. */
  readonly parent?: Context;
};

const kinds = {
  internal: SpanKind.INTERNAL,
  server: SpanKind.SERVER,
  client: SpanKind.CLIENT,
  producer: SpanKind.PRODUCER,
  consumer: SpanKind.CONSUMER,
} as const;

/** Marks a span as failed. Records only the kind of error: its message may quote untrusted input. */
export const failSpan = (span: Span, error: unknown): void => {
  const code =
    error instanceof Error ? ("code" in error && typeof error.code === "string" ? error.code : error.name) : "unknown";
  span.setAttribute("error.type", code);
  span.setStatus({ code: SpanStatusCode.ERROR });
};

/** Runs a function inside a span. The span ends with it; an error marks the span and is rethrown. */
export const inSpan = async <T>(name: string, options: SpanOptions, fn: (span: Span) => T | Promise<T>): Promise<T> => {
  const { kind = "internal", attributes, parent = context.active() } = options;
  const above = trace.getSpanContext(parent);
  if (above !== undefined && isSpanContextValid(above) && (above.traceFlags & TraceFlags.SAMPLED) === 0) {
    // The trace is not recorded, so a span would be wasted: only passes on the caller's context.
    const unrecorded = trace.wrapSpanContext(above);
    return parent === context.active() ? fn(unrecorded) : context.with(parent, () => fn(unrecorded));
  }
  const span = tracer().startSpan(name, { kind: kinds[kind], ...(attributes && { attributes }) }, parent);
  try {
    return await context.with(trace.setSpan(parent, span), () => fn(span));
  } catch (error) {
    failSpan(span, error);
    throw error;
  } finally {
    span.end();
  }
};

/** A client span below the active one, which the caller must end; undefined if the active span is not recorded. */
export const startClientSpan = (name: string, attributes: Attributes): Span | undefined =>
  trace.getActiveSpan()?.isRecording() ? tracer().startSpan(name, { kind: SpanKind.CLIENT, attributes }) : undefined;
