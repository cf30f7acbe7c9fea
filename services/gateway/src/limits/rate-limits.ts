import { HeraldError } from "@herald/kit";
import { RateLimiterMemory, RateLimiterRes } from "rate-limiter-flexible";
import { limitKey } from "./limit-key.ts";

/** Long enough to even out a burst, short enough that nobody waits long and that few addresses are held in memory. */
const windowSeconds = 10;

/** Looking up unknown credentials reads from the bus; this many a second, for all addresses together, it does not notice. */
const lookUpsPerSecond = 200;

export type RateLimits = {
  /** Counts a refusal of this address. Throws rate-limited instead of letting it go on. */
  readonly failure: (address: string) => Promise<void>;
  /** Throws rate-limited when this address was refused too often, without counting. */
  readonly barred: (address: string) => Promise<void>;
  /** Counts a request by client identity. Throws rate-limited when there were too many. */
  readonly client: (address: string) => Promise<void>;
  /** Counts a look-up on the bus for something that memory does not know. Throws rate-limited when there were too many. */
  readonly lookUp: () => Promise<void>;
};

/** `RateLimit` and `RateLimit-Policy` as in draft-ietf-httpapi-ratelimit-headers. */
const limited = (name: string, most: number, seconds: number, left: RateLimiterRes): HeraldError => {
  const reset = Math.max(1, Math.ceil(left.msBeforeNext / 1000));
  return new HeraldError("rate-limited", `requests: at most ${most} in ${seconds} s are accepted here`, {
    retryAfterSeconds: reset,
    headers: {
      "ratelimit-policy": `"${name}";q=${most};w=${seconds}`,
      ratelimit: `"${name}";r=${Math.max(0, left.remainingPoints)};t=${reset}`,
    },
  });
};

const limiter = (name: string, points: number, duration: number) => {
  const memory = new RateLimiterMemory({ points, duration });
  return {
    count: async (key: string): Promise<void> => {
      try {
        await memory.consume(key);
      } catch (left) {
        throw left instanceof RateLimiterRes ? limited(name, points, duration, left) : left;
      }
    },
    check: async (key: string): Promise<void> => {
      const left = await memory.get(key);
      if (left !== null && left.consumedPoints > points) throw limited(name, points, duration, left);
    },
  };
};

/** Limits of this gateway alone, in memory: each replica allows as much again. `failures` and `clients` are per 10 seconds. */
export const createRateLimits = ({ failures, clients }: { failures: number; clients: number }): RateLimits => {
  const refused = limiter("failures", failures, windowSeconds);
  const client = limiter("clients", clients, windowSeconds);
  const lookUps = limiter("look-ups", lookUpsPerSecond, 1);
  return {
    failure: (address) => refused.count(limitKey(address)),
    barred: (address) => refused.check(limitKey(address)),
    client: (address) => client.count(limitKey(address)),
    lookUp: () => lookUps.count("all"),
  };
};
