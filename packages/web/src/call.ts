import { type CallProblem, ownProblem } from "./problem.ts";
import { readBlock, writeBlock } from "./state.ts";

/** A call without an answer fails after this time. */
const timeoutMs = 20_000;
/** A longer Retry-After would be an error, of Herald's clock or this device's. */
const maxBlockedMs = 86_400_000;

/**
 * Calls Herald. Resolves to the parsed body, or undefined if it is not JSON. Throws a {@link CallProblem}: the stored one while a Retry-After
 * of Herald lasts, which pages and the worker share.
 */
export const call = async <Answer>(
  gateway: string,
  route: string,
  body?: object,
  credential?: string,
): Promise<Answer> => {
  const blocked = await readBlock();
  const leftMs = (blocked?.until ?? 0) - Date.now();
  // A time further away comes from a clock that was changed.
  if (blocked && leftMs > 0 && leftMs <= maxBlockedMs) throw { ...blocked.problem, retryAfterMs: leftMs };
  const [method, path] = route.split(" ") as [string, string];
  let response: Response;
  let text: string;
  try {
    response = await fetch(`${gateway}/api/v1/${path}`, {
      method,
      headers: {
        ...(body && { "content-type": "application/json" }),
        ...(credential && { authorization: `Bearer ${credential}` }),
      },
      ...(body && { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(timeoutMs),
      redirect: "error", // another host would get the credential, the body and the last word
    });
    text = await response.text();
  } catch (error) {
    throw ownProblem("offline", error);
  }
  const { ok, status } = response;
  const answer = parsedJson(text);
  if (ok) return answer;
  const retryAfterMs = Number(response.headers.get("retry-after")) * 1_000 || 0;
  const problem: CallProblem = {
    slug: String(answer?.type ?? "failed").replace(/.*#/, ""),
    message: answer?.errors?.join("; ") ?? `Herald answered ${status}`,
    retry: status === 408 || status === 429 || status > 499,
    status,
    retryAfterMs,
  };
  if (problem.retry && retryAfterMs > 0) await writeBlock({ until: Date.now() + retryAfterMs, problem });
  throw problem;
};

/** Undefined for a text that is not JSON. */
// biome-ignore lint/suspicious/noExplicitAny: callers say what they expect, and a proxy may answer anything
export const parsedJson = (text: string | undefined): any => {
  try {
    return JSON.parse(text as string);
  } catch {
    return undefined;
  }
};
