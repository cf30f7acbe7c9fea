import { setTimeout as sleep } from "node:timers/promises";

/** So much is counted at a time. */
const countedBytes = 1_048_576;
/** How soon a disconnected sender is noticed. */
const lookMs = 1_000;

/** Counts the bytes that an upload costs, and waits while the project has read too many: the sender is slowed down, not refused. */
export const createSpend = (count: (bytes: number) => Promise<number>, isGone: () => boolean) => {
  let uncounted = 0;
  return async (bytes: number): Promise<void> => {
    uncounted += bytes;
    if (uncounted < countedBytes) return;
    const delayMs = await count(uncounted);
    uncounted = 0;
    for (let leftMs = delayMs; leftMs > 0 && !isGone(); leftMs -= lookMs) await sleep(Math.min(leftMs, lookMs));
  };
};
