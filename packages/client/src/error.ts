import type { FieldProblem } from "./api-types.ts";

type Details = Partial<Pick<HeraldError, "status" | "errors" | "problems" | "requestId" | "retryAfter">> & {
  readonly cause?: unknown;
};

/**
 * The one error of this client. Only an aborted call rejects with something else: its signal's reason.
 *
 * `slug` is stable. The gateway lists its slugs under `/docs/errors`, such as `validation-failed`. The client adds `unreachable` and
 * `timeout` (no answer), `unexpected-answer` (the answer is not Herald's) and `signature-invalid` (webhooks).
 */
export class HeraldError extends Error {
  declare readonly slug: string;
  /** HTTP status; undefined without an answer. */
  declare readonly status: number | undefined;
  /** The id of the request in the gateway's log. */
  declare readonly requestId: string | undefined;
  /** Seconds to wait before the next attempt. */
  declare readonly retryAfter: number | undefined;
  /** Sentences; each names the field and what is accepted. */
  declare readonly errors: readonly string[];
  /** The errors by field, for programs; may be empty. Not enumerable. */
  declare readonly problems: readonly Readonly<FieldProblem>[];

  constructor(slug: string, message: string, details: Details = {}) {
    const { errors = [message], problems = [], status, requestId, retryAfter } = details;
    super(message, details);
    this.name = "HeraldError";
    // An uncaught error is printed with all its enumerable properties: those that say nothing, or the same again, are not.
    const known = Object.entries({ slug, status, requestId, retryAfter, errors }).filter(
      ([, value]) => value !== undefined,
    );
    Object.assign(this, Object.fromEntries(known));
    Object.defineProperty(this, "problems", { value: problems });
  }
}

type ProblemDocument = {
  errors?: string[];
  problems?: FieldProblem[];
  type?: string;
  title?: string;
  instance?: string;
};

/** Parses Retry-After: seconds or an HTTP date (RFC 9110). */
const secondsOf = (retryAfter: string | null): number | undefined => {
  if (retryAfter === null) return undefined;
  const seconds = Number(retryAfter);
  if (!Number.isNaN(seconds)) return Math.max(0, seconds);
  const at = Date.parse(retryAfter);
  return Number.isNaN(at) ? undefined : Math.max(0, Math.ceil((at - Date.now()) / 1_000));
};

/** Turns an unsuccessful answer into an error. If it is not a problem document, it comes from a proxy or another server. */
export const errorOf = ({ status, headers, url }: Response, text: string): HeraldError => {
  const requestId = headers.get("x-request-id") ?? undefined;
  const retryAfter = secondsOf(headers.get("retry-after"));
  if (headers.get("content-type")?.includes("problem+json")) {
    const problem = JSON.parse(text) as ProblemDocument;
    const errors = problem.errors ?? [problem.title ?? `answered ${status}`];
    return new HeraldError(problem.type?.split("#")[1] ?? "unexpected-answer", errors.join("; "), {
      status,
      errors,
      problems: problem.problems ?? [],
      requestId: requestId ?? problem.instance,
      retryAfter,
    });
  }
  const location = headers.get("location");
  const what = location === null ? "" : ` and leads to ${location}: set \`url\` to where Herald is`;
  return new HeraldError("unexpected-answer", `${url} answered ${status}, not as Herald does${what}`, {
    status,
    requestId,
    retryAfter,
  });
};
