import { type ErrorCode, errors, type Problem } from "@herald/contracts";
import { type Fault, faultOf, messageOf } from "./fault.ts";

type HeraldErrorOptions = {
  readonly cause?: unknown;
  /** When it is worth trying again, in seconds. */
  readonly retryAfterSeconds?: number;
  /** What the answer's header must say beside the usual ones, such as `Allow`. */
  readonly headers?: Readonly<Record<string, string>>;
};

/** A failure with a code of the table in contracts. Its messages reach the caller, so they hold no secret and no content. */
export class HeraldError extends Error {
  readonly code: ErrorCode;
  faults: readonly Fault[];
  readonly retryAfterSeconds: number | undefined;
  readonly headers: Readonly<Record<string, string>> | undefined;

  constructor(code: ErrorCode, faults: string | readonly (string | Fault)[], options: HeraldErrorOptions = {}) {
    const list = (typeof faults === "string" ? [faults] : faults).map((one) =>
      typeof one === "string" ? faultOf(one) : one,
    );
    // Where a refused request came from in the code is of no use to anybody, and costs more than the rest of refusing it.
    const depth = Error.stackTraceLimit;
    if (errors[code].log === "info") Error.stackTraceLimit = 0;
    super(list.map(messageOf).join("; "), options.cause === undefined ? undefined : { cause: options.cause });
    Error.stackTraceLimit = depth;
    this.name = "HeraldError";
    this.code = code;
    this.faults = list.length > 0 ? list : [{ name: "", detail: errors[code].title }];
    this.retryAfterSeconds = options.retryAfterSeconds;
    this.headers = options.headers;
  }

  get messages(): string[] {
    return this.faults.map(messageOf);
  }
}

/** A broker or a database that restarts is back after about this long. */
const unavailableRetrySeconds = 5;
/** Shortest wait that the header can say. */
const busyRetrySeconds = 1;

const retryAfter = (error: HeraldError): number | undefined => {
  const { status } = errors[error.code];
  if (status === 503) return error.retryAfterSeconds ?? unavailableRetrySeconds;
  if (status === 429) return error.retryAfterSeconds ?? busyRetrySeconds;
  return error.retryAfterSeconds;
};

/**
 * The RFC 9457 answer to any error. One that is not Herald's becomes `internal` and says nothing of itself.
 * `headers` are lower-case names.
 */
export const toProblem = (
  error: unknown,
  requestId: string,
): { status: number; headers: Record<string, string>; body: Problem } => {
  const known =
    error instanceof HeraldError
      ? error
      : new HeraldError("internal", "Herald failed; the log has the reason under this request id");
  const { status, title } = errors[known.code];
  const { messages } = known;
  const seconds = retryAfter(known);
  return {
    status,
    headers: {
      "content-type": "application/problem+json; charset=utf-8",
      ...(seconds === undefined ? {} : { "retry-after": String(Math.max(0, Math.ceil(seconds))) }),
      ...(status === 401 ? { "www-authenticate": "Bearer" } : {}),
      ...known.headers,
    },
    body: {
      errors: messages,
      problems: known.faults.map(({ name, detail, code = known.code, pointer = name }) => ({
        ...(pointer !== "" && { pointer }),
        detail,
        code,
      })),
      type: `/docs/errors#${known.code}`,
      title,
      status,
      detail: messages.length === 1 ? String(messages[0]) : `${messages[0]}; and ${messages.length - 1} more`,
      instance: requestId,
    },
  };
};
