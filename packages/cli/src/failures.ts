import { HeraldError } from "@herald/client";

/** Exit codes for scripts. */
export const exitCodes = {
  ok: 0,
  /** Herald failed, a watched notification did not complete, a test push was not accepted, or the doctor found a problem. */
  failed: 1,
  /** The command line or the content is invalid. */
  usage: 2,
  /** The credential is missing, unknown or insufficient. */
  credential: 3,
  notFound: 4,
  conflict: 5,
  /** A limit or a quota. */
  limit: 6,
  /** No answer, or Herald is unavailable: try again later. */
  unavailable: 7,
  /** The rollout of a watched notification stopped by itself. */
  stopped: 8,
  interrupted: 130,
} as const;

/** Shown by `herald --help`. */
export const exitCodesHelp = `

Exit codes:
  0 success · 1 failed · 2 invalid · 3 credential · 4 not found · 5 conflict
  6 limit or quota · 7 unavailable · 8 stopped by itself · 130 interrupted`;

const exitCodeByStatus: Readonly<Record<number, number>> = {
  400: exitCodes.usage,
  401: exitCodes.credential,
  403: exitCodes.credential,
  404: exitCodes.notFound,
  409: exitCodes.conflict,
  410: exitCodes.notFound,
  413: exitCodes.usage,
  422: exitCodes.usage,
  429: exitCodes.limit,
  502: exitCodes.unavailable,
  503: exitCodes.unavailable,
  504: exitCodes.unavailable,
};

const exitCodeOf = ({ status }: Pick<HeraldError, "status">): number =>
  status === undefined ? exitCodes.unavailable : (exitCodeByStatus[status] ?? exitCodes.failed);

/** The command line, or a file that it names, is invalid. `hint` says what to do. */
export class UsageError extends Error {
  readonly errors: readonly string[];
  readonly hint: string | undefined;
  /** One message, or one for each problem. */
  constructor(messages: string | readonly string[], hint?: string) {
    const errors = [messages].flat();
    super(errors.join("\n"));
    this.name = "UsageError";
    this.errors = errors;
    this.hint = hint;
  }
}

/** Ctrl-C. The message says what continues without the command. */
export class Interrupted extends Error {
  constructor(message = "Stopped.") {
    super(message);
    this.name = "Interrupted";
  }
}

/** Why a command failed, for people and for programs. */
export type Failure = Partial<Pick<HeraldError, "slug" | "status" | "problems" | "requestId" | "retryAfter">> & {
  readonly exitCode: number;
  /** One sentence per problem. */
  readonly errors: readonly string[];
  /** What to do about it. */
  readonly hint?: string | undefined;
};

const hints: Readonly<Record<string, string>> = {
  unreachable: "Check that Herald is running, and --url, HERALD_URL or the profile's url. Then run `herald doctor`.",
  timeout: "Herald is busy or unreachable. Run `herald doctor`.",
  "unexpected-answer": "Check --url, HERALD_URL or the profile's url: another server answers there.",
  unauthenticated: "Sign in with a valid token: `herald login`. `herald doctor` says which token is invalid.",
  forbidden:
    "Use a token with the missing scope, `herald token create --name … --scope …`, or an operator with the role: `herald operator list`.",
  "body-too-large": "Send less at once: shorten the content, or split the targets into several sends.",
  "notification-proposed": "`herald notification cancel` withdraws it; then send another.",
  "notification-started": "`herald notification get` shows it, `herald notification cancel` stops the rest of it.",
  "audience-grew":
    "Look at its targets: `herald notification get`. Then run the command again, or `herald notification reject`.",
  "recipients-incomplete": "Its sender uploads the rest: `herald send --recipients <file> --resume <id>`.",
  "approval-required": "Start it for fewer devices, or ask an admin: `herald project update --approval`.",
  "notification-final": "It is already final: `herald notification get` shows its result.",
  "position-gone": "Start again with --since, or without --after to follow new events.",
  internal: "Give the request id to the operator: the gateway's log has the reason.",
};

const hintByStatus: Readonly<Record<number, string>> = {
  403: "Use a token that is allowed to do this: `herald token create`.",
  404: "Check the id and the profile: ids of other projects are not found.",
  409: "Check the current state first: it conflicts with this command.",
  422: "Correct the fields named above; --help shows examples.",
};

const hintOf = ({ slug, status, retryAfter }: HeraldError): string | undefined => {
  const later = retryAfter === undefined ? "later" : `in ${retryAfter} s`;
  if (status === 429) return `Try again ${later}. The operator configures the limits (docs/how-to/set-limits.md).`;
  if (status === 503) return `Try again ${later}. \`herald doctor\` says what is unavailable.`;
  return hints[slug] ?? hintByStatus[status ?? 0];
};

export const failureOf = (error: unknown): Failure => {
  if (error instanceof HeraldError) {
    const { slug, status, errors, problems, requestId, retryAfter } = error;
    return { exitCode: exitCodeOf(error), errors, hint: hintOf(error), slug, status, problems, requestId, retryAfter };
  }
  if (error instanceof Interrupted) return { exitCode: exitCodes.interrupted, errors: [error.message] };
  if (error instanceof UsageError) return { exitCode: exitCodes.usage, errors: error.errors, hint: error.hint };
  // The client throws TypeErrors for malformed options; missing files are Node's errors.
  if (error instanceof TypeError || (error as NodeJS.ErrnoException).code !== undefined)
    return { exitCode: exitCodes.usage, errors: [(error as Error).message] };
  return {
    exitCode: exitCodes.failed,
    errors: [error instanceof Error ? (error.stack ?? error.message) : String(error)],
  };
};
