import { setTimeout as sleep } from "node:timers/promises";
import { HeraldError } from "@herald/kit";

/**
 * Within this process, runs work with the same key one after another: concurrent changes of one device would only conflict. Work with
 * several keys joins all their queues at once, so that no two wait for each other.
 */
export const createKeyedMutex = () => {
  const last = new Map<string, Promise<unknown>>();
  return <Result>(key: string | readonly string[], work: () => Promise<Result>): Promise<Result> => {
    const keys = typeof key === "string" ? [key] : key;
    const before = [...new Set(keys.flatMap((one) => last.get(one) ?? []))];
    const running = (before.length > 1 ? Promise.all(before) : (before[0] ?? Promise.resolve())).then(work);
    const settled = running
      .catch(() => undefined)
      .then(() => {
        for (const one of keys) if (last.get(one) === settled) last.delete(one);
      });
    for (const one of keys) last.set(one, settled);
    return running;
  };
};

/** The result of an attempt whose device has changed since it was read. */
export const conflict = Symbol("conflict");

/** One request succeeds in each round, so this many concurrent requests may come first. */
const maxRounds = 100;
/** Breaks the lockstep of two processes; short compared to a round. */
const maxWaitMs = 20;

/** @throws HeraldError `service-unavailable` after 100 conflicts. */
export const retryOnConflict = async <Result>(attempt: () => Promise<Result | typeof conflict>): Promise<Result> => {
  for (let round = 1; round <= maxRounds; round++) {
    const result = await attempt();
    if (result !== conflict) return result;
    await sleep(Math.random() * Math.min(round, maxWaitMs));
  }
  throw new HeraldError("service-unavailable", "too many requests change this device at the same time", {
    retryAfterSeconds: 1,
  });
};
