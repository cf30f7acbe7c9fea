import { once } from "node:events";
import { setTimeout as delay } from "node:timers/promises";

/** What a part says when it ends: whether to start it again, and why it ended. */
export type Ending = { why: string; again: boolean };

export type Started = { pids: number[]; ended: Promise<Ending>; stop: () => Promise<unknown> };

export type Part = { name: string; start: () => Promise<Started> };

export type Kept = { pids: () => number[]; stop: () => Promise<void> };

/** Quick for one crash, slow for a crash that repeats: a part that cannot start must not keep the machine busy. */
const firstDelayMs = 250;
const longestDelayMs = 10_000;
/** After so long the next crash is a new one. */
const steadyAfterMs = 30_000;

/**
 * Starts a part and starts it again whenever it ends unasked. A first start that fails throws; later ones are tried again.
 * `onEnd` hears of every end, `onStart` of every start but the first, `onHopeless` of an end that a start would repeat.
 */
export async function keepRunning(
  part: Part,
  on: { end: (why: string) => void; start: () => void; hopeless: (why: string) => void },
): Promise<Kept> {
  const stopping = new AbortController();
  // What somebody else runs never ends, so its end cannot be what a stop waits for.
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
      await current?.stop(); // what is left of a part of several processes
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
