import { setTimeout as sleep } from "node:timers/promises";
import { HeraldError } from "@herald/kit";

/** What an attempt resolves to when another request was faster: what it had read is no longer so. */
export const again = Symbol("again");

/** Of requests about one device in several processes one wins each round, so that is how many may come before this one. */
const maxRounds = 100;
/** Short beside a round, so that two processes do not keep step and one of them wins every time. */
const longestWaitMs = 20;

/** Attempts a change until nobody else was faster. Throws `service-unavailable` when that does not end. */
export const retryOnConflict = async <Result>(attempt: () => Promise<Result | typeof again>): Promise<Result> => {
  for (let round = 1; round <= maxRounds; round++) {
    const result = await attempt();
    if (result !== again) return result;
    await sleep(Math.random() * Math.min(round, longestWaitMs));
  }
  throw new HeraldError("service-unavailable", "too many requests change this device at the same time", {
    retryAfterSeconds: 1,
  });
};
