/** So many in so many seconds, by a name that clients can tell it by. */
export type Policy = { readonly name: string; readonly most: number; readonly seconds: number };

/** How much of a policy is left to a caller, and in how many seconds all of it is again. */
export type State = { readonly policy: Policy; readonly remaining: number; readonly resetSeconds: number };

/** `RateLimit-Policy` and `RateLimit` as in draft-ietf-httpapi-ratelimit-headers: lists, in one order. */
export const rateLimitHeaders = (states: readonly State[]): Readonly<Record<string, string>> => ({
  "ratelimit-policy": states
    .map(({ policy: { name, most, seconds } }) => `"${name}";q=${most};w=${seconds}`)
    .join(", "),
  ratelimit: states
    .map(({ policy, remaining, resetSeconds }) => `"${policy.name}";r=${remaining};t=${resetSeconds}`)
    .join(", "),
});
