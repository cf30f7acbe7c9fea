import { setTimeout as delay } from "node:timers/promises";

/** Connecting to a fresh database and making indexes takes a second or two; on a busy machine ten times that. */
const readyWithinMs = 90_000;

/** Waits until every `/readyz` is 200; else throws with what each of the others last said. */
export async function allReady(urls: Readonly<Record<string, string>>): Promise<void> {
  const waiting = await Promise.all(
    Object.entries(urls).map(async ([name, url]) => {
      const why = await ready(`${url}/readyz`);
      return why && `${name} is not ready: ${why}`;
    }),
  );
  const problems = waiting.filter(Boolean);
  if (problems.length > 0) throw new Error(problems.join("\n"));
}

/** Undefined when ready, else what the last answer was. */
async function ready(url: string): Promise<string | undefined> {
  const deadline = Date.now() + readyWithinMs;
  for (;;) {
    const why = await fetch(url, { signal: AbortSignal.timeout(5_000) }).then(
      async (response) => {
        const text = await response.text();
        return response.ok ? undefined : `${response.status} ${text}`;
      },
      (error: Error) => (error.cause instanceof Error ? error.cause.message : error.message),
    );
    if (why === undefined || Date.now() > deadline) return why;
    await delay(100);
  }
}
