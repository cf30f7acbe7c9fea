/** Why a call failed. */
export type CallProblem = {
  /** Herald's slug, such as `user-token-invalid`; or one of the kit's own, such as `offline`, which its documentation lists. */
  readonly slug: string;
  readonly message: string;
  /** Whether the kit keeps the change and retries it. */
  readonly retry: boolean;
  /** HTTP status; 0 without an answer. */
  readonly status: number;
  /** What is left of Herald's Retry-After, in milliseconds. */
  readonly retryAfterMs?: number;
};

/** What is no problem yet, such as an error of the browser, is one without a name. */
export const problemOf = (error: unknown): CallProblem =>
  typeof error === "object" && error !== null && "slug" in error ? (error as CallProblem) : ownProblem("failed", error);

/** A problem of the kit's own: no answer of Herald. */
export const ownProblem = (slug: string, message: unknown, retry = true): CallProblem => ({
  slug,
  message: String(message),
  retry,
  status: 0,
});
