/** Why a call failed. */
export type Problem = {
  /** Herald's slug, such as `user-token-invalid`; or `offline`, `failed`, `credential-lost`, `not-registered`, `retry-later`. */
  readonly slug: string;
  readonly message: string;
  /** Whether the kit keeps the change and retries it. */
  readonly retry: boolean;
  /** HTTP status; 0 without an answer. */
  readonly status: number;
  /** Milliseconds that Herald's Retry-After named; 0 without. */
  readonly retryAfterMs: number;
};

/** A problem of the kit's own. It is retried unless it has the status of a refusal. */
export const deviceProblem = (slug: string, message: string, status = 0): Problem => ({
  slug,
  message,
  retry: status === 0,
  status,
  retryAfterMs: 0,
});

const timeoutMs = 20_000;
const maxRetryAfterMs = 86_400_000;

/** A longer Retry-After than a day would be an error. */
const retryAfter = (header: string | null): number => {
  const seconds = header === null ? 0 : Number(header);
  const ms = Number.isNaN(seconds) ? Date.parse(header ?? "") - Date.now() : seconds * 1_000;
  return Math.min(Math.max(ms || 0, 0), maxRetryAfterMs);
};

const parsed = (text: string): Record<string, unknown> | undefined => {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
};

/** Calls Herald. Resolves to the parsed body; undefined if it is no JSON. Throws a {@link Problem}. */
export const callHerald = async <Answer>(
  gateway: string,
  route: string,
  body?: unknown,
  credential?: string,
): Promise<Answer> => {
  const [method = "", path = ""] = route.split(" ");
  // React Native has no AbortSignal.timeout.
  const abort = new AbortController();
  const timer = setTimeout(() => abort.abort(), timeoutMs);
  let response: Response;
  let text: string;
  try {
    response = await fetch(`${gateway}/api/v1/${path}`, {
      method,
      headers: {
        ...(body !== undefined && { "content-type": "application/json" }),
        ...(credential && { authorization: `Bearer ${credential}` }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      signal: abort.signal,
      // Another host would get the credential, the body and the last word. Expo's fetch obeys, React Native's own follows.
      redirect: "error",
    });
    text = await response.text();
  } catch (error) {
    throw deviceProblem("offline", String(error));
  } finally {
    clearTimeout(timer);
  }
  const answer = parsed(text);
  const { ok, status } = response;
  if (ok) return answer as Answer;
  throw {
    slug: String(answer?.type ?? "failed").replace(/.*#/, ""),
    message: Array.isArray(answer?.errors) ? answer.errors.join("; ") : `Herald answered ${status}`,
    retry: status === 408 || status === 429 || status > 499,
    status,
    retryAfterMs: retryAfter(response.headers.get("retry-after")),
  } satisfies Problem;
};
