/** Why a call failed. */
export type CallProblem = {
  /** Herald's slug, such as `user-token-invalid`; or `offline`, `needs-click`, `failed`. */
  readonly slug: string;
  readonly message: string;
  /** Whether the kit keeps the change and retries it. */
  readonly retry: boolean;
  /** HTTP status; 0 without an answer. */
  readonly status: number;
  /** What is left of Herald's Retry-After, in milliseconds. */
  readonly retryAfterMs?: number;
};
