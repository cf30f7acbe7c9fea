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

/** A line of its own to a pipe costs 20 µs, and a reader that is slow stops the process; a page of lines costs the same. */
const pageBytes = 4_096;
/** A line waits at most so long. Fatal lines, exits and crashes flush at once: only a kill -9 loses what waits. */
const flushMs = 100;

let output: ReturnType<typeof pino.destination> | undefined;

/** One for the process, however many loggers write to it. */
const standardOutput = () => {
  output ??= pino.destination({ dest: 1, sync: false, minLength: pageBytes, periodicFlush: flushMs });
  return output;
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
    destination ?? standardOutput(),
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
