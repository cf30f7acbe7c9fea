import { HeraldError } from "@herald/client";
import { exitCodeOf, exitCodes } from "./exit-codes.ts";

/** The command line cannot be carried out as it is. `hint` says what to do. */
export class UsageError extends Error {
  readonly hint: string | undefined;
  constructor(message: string, hint?: string) {
    super(message);
    this.name = "UsageError";
    this.hint = hint;
  }
}

/** Ctrl-C. Its message says what is left as it was. */
export class Interrupted extends Error {
  constructor(message = "Stopped.") {
    super(message);
    this.name = "Interrupted";
  }
}

/** What a command ended with, for people and for programs. */
export type Failure = {
  readonly exitCode: number;
  /** What is wrong, a sentence each. */
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
  unreachable:
    "Check that Herald runs there, and --url, HERALD_URL or the profile's url. `herald doctor` looks closer.",
  timeout: "Herald is busy or cannot be reached. `herald doctor` looks closer.",
  "unexpected-answer": "Check --url, HERALD_URL or the profile's url: something else answers there.",
  unauthenticated: "Sign in with a token that is valid: `herald login`. `herald doctor` says which one is not.",
  forbidden: "Use a token with the scope that is missing: `herald token create --name … --scope …` makes one.",
  "body-too-large": "Send less at once: shorten the content, or split the targets over several sends.",
  "notification-final": "Nothing is left to do: `herald notification get` shows how it ended.",
  "position-gone": "Begin again with --since, or with neither to follow what comes.",
  internal: "Give the request's id to the operator: the gateway's log has the reason under it.",
};

const byStatus: Readonly<Record<number, string>> = {
  403: "Use a token that may do this: `herald token create` makes one.",
  404: "Check the id, and that the profile is of the project it belongs to: other projects' ids are not found.",
  409: "Look at what is there first: it is not as this command needs it.",
  422: "Correct what is named above; --help shows examples.",
};

const hintOf = ({ slug, status, retryAfter }: HeraldError): string | undefined => {
  const later = retryAfter === undefined ? "later" : `in ${retryAfter} s`;
  if (status === 429)
    return `Try again ${later}. An operator sets the limits at the gateway (docs/how-to/set-limits.md).`;
  if (status === 503) return `Try again ${later}. Nothing is lost, and \`herald doctor\` says what is unavailable.`;
  return hints[slug] ?? byStatus[status ?? 0];
};

export const failureOf = (error: unknown): Failure => {
  if (error instanceof HeraldError) {
    const { slug, status, errors, problems, requestId, retryAfter } = error;
    return { exitCode: exitCodeOf(error), errors, hint: hintOf(error), slug, status, problems, requestId, retryAfter };
  }
  if (error instanceof Interrupted) return { exitCode: exitCodes.interrupted, errors: [error.message] };
  if (error instanceof UsageError) return { exitCode: exitCodes.usage, errors: [error.message], hint: error.hint };
  // The client refuses impossible options so, files that are not there are Node's.
  if (error instanceof TypeError || (error as NodeJS.ErrnoException).code !== undefined)
    return { exitCode: exitCodes.usage, errors: [(error as Error).message] };
  return {
    exitCode: exitCodes.failed,
    errors: [error instanceof Error ? (error.stack ?? error.message) : String(error)],
  };
};
