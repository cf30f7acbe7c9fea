import { setTimeout as delay } from "node:timers/promises";

/** Longer than the largest broadcast on a slow machine: after this time an event will not happen. */
const withinMs = 600_000;

/** Calls `ask` until it returns a value. Throws after ten minutes, with `what` in the message. */
export const until = async <T>(what: string, ask: () => Promise<T | undefined>, everyMs = 100): Promise<T> => {
  const giveUpAt = Date.now() + withinMs;
  for (;;) {
    const answer = await ask();
    if (answer !== undefined) return answer;
    if (Date.now() > giveUpAt) throw new Error(`waited ${withinMs / 1000} s for ${what}`);
    await delay(everyMs);
  }
};
