/** Why a call failed. */
export type CallProblem = {
  /** Herald's slug, such as `user-token-invalid`; or `offline`, `needs-click`, `failed`. */
  readonly slug: string;
  readonly message: string;
  /** Whether the kit keeps the change and retries it. */
  readonly retry: boolean;
  /** HTTP status; 0 without an answer. */
  readonly status: number;
};

/** A call without an answer fails after this time. */
const timeoutMs = 20_000;

/** Calls Herald. Resolves to the parsed body, or undefined if it is not JSON. Throws a {@link CallProblem}. */
export const call = async <Answer>(
  gateway: string,
  route: string,
  body?: unknown,
  credential?: string,
): Promise<Answer> => {
  const [method = "", path = ""] = route.split(" ");
  let response: Response;
  let text: string;
  try {
    response = await fetch(`${gateway}/api/v1/${path}`, {
      method,
      headers: {
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        ...(credential && { authorization: `Bearer ${credential}` }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(timeoutMs),
    });
    text = await response.text();
  } catch (error) {
    throw { slug: "offline", message: String(error), retry: true, status: 0 } satisfies CallProblem;
  }
  const { ok, status } = response;
  const answer = parsedJson(text);
  if (ok) return answer;
  throw {
    slug: String(answer?.type ?? "failed").replace(/.*#/, ""),
    message: answer?.errors?.join("; ") ?? `Herald answered ${status}`,
    retry: status === 408 || status === 429 || status > 499,
    status,
  } satisfies CallProblem;
};

/** Undefined for a text that is not JSON. */
// biome-ignore lint/suspicious/noExplicitAny: callers say what they expect, and a proxy may answer anything
export const parsedJson = (text: string): any => {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
};
