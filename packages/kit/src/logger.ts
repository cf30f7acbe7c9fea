import { isSpanContextValid, trace } from "@opentelemetry/api";
import { type Bindings, type ChildLoggerOptions, type DestinationStream, type Logger, pino } from "pino";
import { escapeActive, redact, scrub } from "./redact.ts";
import { currentRequestId } from "./request-context.ts";

export type { Logger } from "pino";

export type LoggerOptions = {
  readonly service: string;
  readonly level: "trace" | "debug" | "info" | "warn" | "error" | "fatal" | "silent";
  /** Standard output by default. */
  readonly destination?: DestinationStream;
};

/** The ids that link a line to its request and its trace. */
const correlation = (): Record<string, string> => {
  const requestId = currentRequestId();
  const span = trace.getActiveSpan()?.spanContext();
  return {
    ...(requestId === undefined ? {} : { requestId }),
    ...(span && isSpanContextValid(span) ? { traceId: span.traceId, spanId: span.spanId } : {}),
  };
};

/** Writing one line to a pipe costs 20 µs, and a slow reader stops the process. Writing a page of lines costs the same. */
const pageBytes = 4_096;
/** The longest wait of a line. Fatal lines, exits and crashes flush at once: only a kill -9 loses waiting lines. */
const flushMs = 100;

let output: ReturnType<typeof pino.destination> | undefined;

/** One destination for the whole process, shared by all its loggers. */
const standardOutput = () => {
  output ??= pino.destination({ dest: 1, sync: false, minLength: pageBytes, periodicFlush: flushMs });
  return output;
};

/**
 * Logs JSON lines with the service, the request id and the trace. Masks secrets and contents by name at any depth, and by pattern in the
 * finished line.
 */
export const createLogger = ({ service, level, destination }: LoggerOptions): Logger => {
  const log = pino(
    {
      level,
      base: { service },
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }), log: redact },
      // `redact` has already reduced errors to safe fields; pino's own serializer would not recognise them.
      serializers: { err: (safe: unknown) => safe },
      mixin: correlation,
      hooks: { streamWrite: (line) => escapeActive(scrub(line)) },
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
