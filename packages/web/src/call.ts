/** Why something was not done. */
export type Problem = {
  /** Herald's slug, such as `user-token-invalid`; or `offline`, `needs-click`, `failed`. */
  readonly slug: string;
  readonly message: string;
  /** It is kept, and tried again. */
  readonly retry: boolean;
  /** Of Herald's answer; 0 without one. */
  readonly status: number;
};

/** No answer for so long is none. */
const timeoutMs = 20_000;

/** Calls Herald. Throws a {@link Problem}; answers the body, undefined where there is none. */
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
    throw { slug: "offline", message: String(error), retry: true, status: 0 } satisfies Problem;
  }
  const { ok, status } = response;
  const answer = parse(text);
  if (ok) return answer;
  throw {
    slug: String(answer?.type ?? "failed").replace(/.*#/, ""),
    message: answer?.errors?.join("; ") ?? `Herald answered ${status}`,
    retry: status === 408 || status === 429 || status > 499,
    status,
  } satisfies Problem;
};

// biome-ignore lint/suspicious/noExplicitAny: callers say what they expect, and a proxy may answer anything
const parse = (text: string): any => {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
};
