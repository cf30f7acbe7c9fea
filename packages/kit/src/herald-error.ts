import { type ErrorCode, errors, type Problem } from "@herald/contracts";

type HeraldErrorOptions = {
  readonly cause?: unknown;
  /** Seconds after which a retry makes sense. */
  readonly retryAfterSeconds?: number;
  /** Additional response headers, such as `Allow`. */
  readonly headers?: Readonly<Record<string, string>>;
};

/** A failure with a code from the table in contracts. Its messages reach the caller, so they contain no secret and no content. */
export class HeraldError extends Error {
  readonly code: ErrorCode;
  faults: readonly Fault[];
  readonly retryAfterSeconds: number | undefined;
  readonly headers: Readonly<Record<string, string>> | undefined;

  constructor(code: ErrorCode, faults: string | readonly (string | Fault)[], options: HeraldErrorOptions = {}) {
    const list = (typeof faults === "string" ? [faults] : faults).map((one) =>
      typeof one === "string" ? faultOf(one) : one,
    );
    // A stack trace does not explain a refused request, and it would cost more than the rest of the refusal.
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

type NotFoundCode = Extract<ErrorCode, `${string}-not-found`>;

/** The error of a thing that does not exist, such as `id: device not found`. `name` is the field that names it; `hint` says more. */
export const notFound = (code: NotFoundCode, name: string, hint?: string): HeraldError =>
  new HeraldError(code, `${name}: ${code.replaceAll("-", " ")}${hint === undefined ? "" : `; ${hint}`}`);

/** Whether the error is Herald's, with one of these codes. */
export const hasCode = (error: unknown, ...codes: readonly ErrorCode[]): error is HeraldError =>
  error instanceof HeraldError && codes.includes(error.code);

/** The value, unless there is none. @throws HeraldError the one that `missing` makes. */
export const existing = <Value>(value: Value | null | undefined, missing: () => HeraldError): Value => {
  if (value === null || value === undefined) throw missing();
  return value;
};

/** About the time that a broker or a database needs to restart. */
const unavailableRetrySeconds = 5;
/** The shortest wait that the header can express. */
const busyRetrySeconds = 1;

const retryAfter = (error: HeraldError): number | undefined => {
  const { status } = errors[error.code];
  if (status === 503) return error.retryAfterSeconds ?? unavailableRetrySeconds;
  if (status === 429) return error.retryAfterSeconds ?? busyRetrySeconds;
  return error.retryAfterSeconds;
};

/**
 * The RFC 9457 response to any error. An error that is not Herald's becomes `internal`, without details. `headers` have lower-case names.
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

/** One problem of a request: the source of `errors` and `problems` in the response. */
export type Fault = {
  /** The start of the message: a dotted path, a parameter or a header. Empty if the whole request is meant. */
  readonly name: string;
  readonly detail: string;
  /** Absent: the slug of the error. */
  readonly code?: string;
  /** Pointer into the body. Absent: `name` is used instead. */
  readonly pointer?: string;
};

export const messageOf = ({ name, detail }: Fault): string => (name === "" ? detail : `${name}: ${detail}`);

/** Parses a message such as `device.token: must be …` into a fault. */
export const faultOf = (message: string): Fault => {
  const [, name = "", detail = message] = /^([A-Za-z_][^\s:]*): (.*)$/s.exec(message) ?? [];
  return { name, detail, ...(name === "body" && { pointer: "#" }) };
};

/** An RFC 6901 JSON pointer as a URI fragment. */
export const pointerTo = (path: readonly PropertyKey[]): string =>
  [
    "#",
    ...path.map((part) => encodeURIComponent(String(part).toWellFormed().replaceAll("~", "~0").replaceAll("/", "~1"))),
  ].join("/");
