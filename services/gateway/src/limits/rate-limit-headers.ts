/** A limit per window of `seconds`. Clients see its name. */
export type Policy = { readonly name: string; readonly limit: number; readonly seconds: number };

/** What is left of a policy for one caller, and in how many seconds its window ends. */
export type State = { readonly policy: Policy; readonly remaining: number; readonly resetSeconds: number };

/** `RateLimit-Policy` and `RateLimit` as in draft-ietf-httpapi-ratelimit-headers: two lists in the same order. */
export const rateLimitHeaders = (states: readonly State[]): Readonly<Record<string, string>> => ({
  "ratelimit-policy": states
    .map(({ policy: { name, limit, seconds } }) => `"${name}";q=${limit};w=${seconds}`)
    .join(", "),
  ratelimit: states
    .map(({ policy, remaining, resetSeconds }) => `"${policy.name}";r=${remaining};t=${resetSeconds}`)
    .join(", "),
});
