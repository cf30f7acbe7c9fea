/** One problem of a request: where in the body, what, and a code that does not change. */
export type Problem = { readonly pointer: string; readonly detail: string; readonly code: string };

type Details = {
  readonly status?: number | undefined;
  readonly errors?: readonly string[];
  readonly problems?: readonly Problem[];
  readonly requestId?: string | undefined;
  readonly retryAfter?: number | undefined;
  readonly cause?: unknown;
};

/**
 * Everything that goes wrong between you and Herald. An aborted call rejects with its signal's reason instead.
 *
 * `slug` is stable: one of the errors under `/docs/errors` of a gateway, such as `validation-failed`, or one of the client's own:
 * `unreachable` and `timeout` (no answer came), `unexpected-answer` (something answered that is not Herald), `signature-invalid` (a webhook).
 */
export class HeraldError extends Error {
  readonly slug: string;
  /** HTTP status; undefined where no answer came. */
  readonly status: number | undefined;
  /** What is wrong, in sentences: each names the field and what would be accepted. */
  readonly errors: readonly string[];
  /** The same by field, for forms and programs; empty where the gateway does not say it. */
  readonly problems: readonly Problem[];
  /** Names the request in the gateway's log. */
  readonly requestId: string | undefined;
  /** Seconds until it is worth trying again. */
  readonly retryAfter: number | undefined;

  constructor(slug: string, message: string, details: Details = {}) {
    const { errors = [message], problems = [], status, requestId, retryAfter, cause } = details;
    super(message, cause === undefined ? undefined : { cause });
    this.name = "HeraldError";
    this.slug = slug;
    this.status = status;
    this.errors = errors;
    this.problems = problems;
    this.requestId = requestId;
    this.retryAfter = retryAfter;
  }
}

type ProblemDocument = { errors?: string[]; problems?: Problem[]; type?: string; title?: string; instance?: string };

/** Seconds or a date, as RFC 9110 has it. */
const secondsOf = (retryAfter: string | null): number | undefined => {
  if (retryAfter === null) return undefined;
  const seconds = Number(retryAfter);
  if (!Number.isNaN(seconds)) return Math.max(0, seconds);
  const at = Date.parse(retryAfter);
  return Number.isNaN(at) ? undefined : Math.max(0, Math.ceil((at - Date.now()) / 1_000));
};

/** The error that an answer other than 2xx is. What is no problem document comes from something in front of Herald. */
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
