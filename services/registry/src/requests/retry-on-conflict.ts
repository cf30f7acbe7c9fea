import { setTimeout as sleep } from "node:timers/promises";
import { HeraldError } from "@herald/kit";

/** The result of an attempt whose device has changed since it was read. */
export const conflict = Symbol("conflict");

/** In each round one request succeeds, so as many concurrent requests may come first. */
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
