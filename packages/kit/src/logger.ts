import { isSpanContextValid, trace } from "@opentelemetry/api";
import { type Bindings, type ChildLoggerOptions, type DestinationStream, type Logger, pino } from "pino";
import { redact } from "./redact.ts";
import { currentRequestId } from "./request-context.ts";
import { scrub } from "./scrub.ts";

export type { Logger } from "pino";

export type LoggerOptions = {
  readonly service: string;
  readonly level: "trace" | "debug" | "info" | "warn" | "error" | "fatal" | "silent";
  /** Standard output by default. */
  readonly destination?: DestinationStream;
};

/** What ties a line to its request and its trace. */
const correlation = (): Record<string, string> => {
  const requestId = currentRequestId();
  const span = trace.getActiveSpan()?.spanContext();
  return {
    ...(requestId === undefined ? {} : { requestId }),
    ...(span && isSpanContextValid(span) ? { traceId: span.traceId, spanId: span.spanId } : {}),
  };
};

/**
 * JSON lines with the service, the request id and the trace. Secrets and contents are masked by name at any depth,
 * and by their look in the finished line.
 */
export const createLogger = ({ service, level, destination }: LoggerOptions): Logger => {
  const log = pino(
    {
      level,
      base: { service },
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }), log: redact },
      // Errors are already reduced to what is safe; pino's own serializer would take them for something else.
      serializers: { err: (safe: unknown) => safe },
      mixin: correlation,
      hooks: { streamWrite: scrub },
    },
    // Written at once: a line that waits in a buffer is lost with the process that most needs it.
    destination ?? pino.destination({ dest: 1, sync: true }),
  );
  // pino formats the bindings of the first logger only.
  const { child, setBindings } = log;
  log.child = function redactedChild(this: Logger, bindings: Bindings, options?: ChildLoggerOptions) {
    return Reflect.apply(child, this, [redact(bindings), options]);
  } as unknown as Logger["child"];
  log.setBindings = function setRedactedBindings(this: Logger, bindings: Bindings) {
    Reflect.apply(setBindings, this, [redact(bindings)]);
  };
  return log;
};
