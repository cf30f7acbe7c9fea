import { setTimeout as delay } from "node:timers/promises";

/** The delay grows, so that a fast result is found fast and a slow one costs little. */
const firstDelayMs = 5;
const longestDelayMs = 200;

/**
 * Calls `check` until it does not throw, and returns its result. After the deadline it throws the last error, with the number of tries
 * and the time.
 */
export async function eventually<T>(
  check: () => T | Promise<T>,
  { timeoutMs = 20_000 }: { timeoutMs?: number } = {},
): Promise<T> {
  const started = Date.now();
  let wait = firstDelayMs;
  for (let tries = 1; ; tries += 1) {
    try {
      return await check();
    } catch (error) {
      const waited = Date.now() - started;
      if (waited >= timeoutMs) throw withContext(error, `still so after ${tries} tries in ${waited} ms`);
    }
    await delay(wait);
    wait = Math.min(wait * 1.5, longestDelayMs);
  }
}

/** Changes the error itself, so that an assertion keeps its other fields, such as the diff. */
function withContext(error: unknown, context: string): unknown {
  if (!(error instanceof Error)) return new Error(`${String(error)} (${context})`);
  error.message = `${error.message} (${context})`;
  return error;
}
