import { setTimeout as delay } from "node:timers/promises";

/** What takes longer than the largest broadcast on a slow machine will never come. */
const withinMs = 600_000;

/** Asks until there is an answer; `what` says what was waited for, for the error when there is none in ten minutes. */
export const until = async <T>(what: string, ask: () => Promise<T | undefined>, everyMs = 100): Promise<T> => {
  const giveUpAt = Date.now() + withinMs;
  for (;;) {
    const answer = await ask();
    if (answer !== undefined) return answer;
    if (Date.now() > giveUpAt) throw new Error(`waited ${withinMs / 1000} s for ${what}`);
    await delay(everyMs);
  }
};
