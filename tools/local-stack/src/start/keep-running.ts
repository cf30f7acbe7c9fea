import { once } from "node:events";
import { setTimeout as delay } from "node:timers/promises";

/** Why a part ended, and whether to start it again. */
export type Ending = { why: string; again: boolean };

export type Started = { pids: number[]; ended: Promise<Ending>; stop: () => Promise<unknown> };

export type Part = { name: string; start: () => Promise<Started> };

export type Kept = { pids: () => number[]; stop: () => Promise<void> };

/** Restart quickly after one crash, slowly after repeated crashes: a part that cannot start must not keep the machine busy. */
const firstDelayMs = 250;
const longestDelayMs = 10_000;
/** After running this long, the delay starts over at the next crash. */
const steadyAfterMs = 30_000;

/**
 * Starts a part and restarts it whenever it ends unexpectedly. Throws if the first start fails; retries later ones. Calls `on.end` at
 * every end, `on.start` at every start but the first, and `on.hopeless` at an end that a restart would only repeat.
 */
export async function keepRunning(
  part: Part,
  on: { end: (why: string) => void; start: () => void; hopeless: (why: string) => void },
): Promise<Kept> {
  const stopping = new AbortController();
  // A part that runs elsewhere never ends, so `stop` cannot wait for its end.
  const stopped = once(stopping.signal, "abort").then(() => undefined);
  let current: Started | undefined = await part.start();
  const watching = watch();

  async function watch(): Promise<void> {
    let wait = firstDelayMs;
    while (!stopping.signal.aborted) {
      const since = Date.now();
      const ending = await Promise.race([current?.ended ?? { why: "", again: true }, stopped]);
      if (!ending || stopping.signal.aborted) return;
      const { why, again } = ending;
      if (why) on.end(why);
      if (!again) return on.hopeless(why);
      await current?.stop(); // a part of several processes may still have some running
      current = undefined;
      if (Date.now() - since > steadyAfterMs) wait = firstDelayMs;
      await delay(wait, undefined, { signal: stopping.signal }).catch(() => {});
      wait = Math.min(wait * 2, longestDelayMs);
      if (stopping.signal.aborted) return;
      try {
        current = await part.start();
        on.start();
      } catch (error) {
        on.end(error instanceof Error ? error.message : String(error));
      }
    }
  }

  return {
    pids: () => current?.pids ?? [],
    stop: async () => {
      stopping.abort();
      await current?.stop();
      await watching;
      await current?.stop(); // started between the two lines above
    },
  };
}
