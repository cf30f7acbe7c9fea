import { setTimeout as delay } from "node:timers/promises";

/** Growing, so that a quick answer is seen quickly and a slow one costs little. */
const firstDelayMs = 5;
const longestDelayMs = 200;

/**
 * Calls `check` until it does not throw, and gives what it returned. After the deadline it throws the last error, with
 * how often and how long it tried.
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

/** The same error, so that what an assertion shows beside its message is kept. */
function withContext(error: unknown, context: string): unknown {
  if (!(error instanceof Error)) return new Error(`${String(error)} (${context})`);
  error.message = `${error.message} (${context})`;
  return error;
}
