import { HeraldError } from "@herald/client";
import { exitCodeOf, exitCodes } from "./exit-codes.ts";

/** The command line is invalid. `hint` says what to do. */
export class UsageError extends Error {
  readonly hint: string | undefined;
  constructor(message: string, hint?: string) {
    super(message);
    this.name = "UsageError";
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
export type Failure = {
  readonly exitCode: number;
  /** One sentence per problem. */
  readonly errors: readonly string[];
  /** What to do about it. */
  readonly hint?: string | undefined;
  readonly slug?: string | undefined;
  readonly status?: number | undefined;
  readonly problems?: HeraldError["problems"];
  readonly requestId?: string | undefined;
  readonly retryAfter?: number | undefined;
};

const hints: Readonly<Record<string, string>> = {
  unreachable: "Check that Herald is running, and --url, HERALD_URL or the profile's url. Then run `herald doctor`.",
  timeout: "Herald is busy or unreachable. Run `herald doctor`.",
  "unexpected-answer": "Check --url, HERALD_URL or the profile's url: another server answers there.",
  unauthenticated: "Sign in with a valid token: `herald login`. `herald doctor` says which token is invalid.",
  forbidden: "Use a token with the missing scope: `herald token create --name … --scope …`.",
  "body-too-large": "Send less at once: shorten the content, or split the targets into several sends.",
  "notification-final": "It is already final: `herald notification get` shows its result.",
  "position-gone": "Start again with --since, or without --after to follow new events.",
  internal: "Give the request id to the operator: the gateway's log has the reason.",
};

const byStatus: Readonly<Record<number, string>> = {
  403: "Use a token that is allowed to do this: `herald token create`.",
  404: "Check the id and the profile: ids of other projects are not found.",
  409: "Check the current state first: it conflicts with this command.",
  422: "Correct the fields named above; --help shows examples.",
};

const hintOf = ({ slug, status, retryAfter }: HeraldError): string | undefined => {
  const later = retryAfter === undefined ? "later" : `in ${retryAfter} s`;
  if (status === 429) return `Try again ${later}. The operator configures the limits (docs/how-to/set-limits.md).`;
  if (status === 503) return `Try again ${later}. \`herald doctor\` says what is unavailable.`;
  return hints[slug] ?? byStatus[status ?? 0];
};

export const failureOf = (error: unknown): Failure => {
  if (error instanceof HeraldError) {
    const { slug, status, errors, problems, requestId, retryAfter } = error;
    return { exitCode: exitCodeOf(error), errors, hint: hintOf(error), slug, status, problems, requestId, retryAfter };
  }
  if (error instanceof Interrupted) return { exitCode: exitCodes.interrupted, errors: [error.message] };
  if (error instanceof UsageError) return { exitCode: exitCodes.usage, errors: [error.message], hint: error.hint };
  // The client throws TypeErrors for malformed options; missing files are Node's errors.
  if (error instanceof TypeError || (error as NodeJS.ErrnoException).code !== undefined)
    return { exitCode: exitCodes.usage, errors: [(error as Error).message] };
  return {
    exitCode: exitCodes.failed,
    errors: [error instanceof Error ? (error.stack ?? error.message) : String(error)],
  };
};
