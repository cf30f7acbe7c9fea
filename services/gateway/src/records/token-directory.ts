import { isProjectToken, secretHash, type TokenRecord, tokenKey } from "@herald/contracts";
import type { RateLimits } from "../limits/rate-limits.ts";
import type { BucketReplica } from "./replicate-bucket.ts";

export type TokenDirectory = {
  /** What is known of a project token; undefined when it is none, unknown, revoked or expired. */
  readonly find: (token: string, address: string) => Promise<TokenRecord | undefined>;
};

/**
 * Project tokens by their hash. A look-up by hash needs no comparison in constant time: what its time could tell is the
 * hash, and nobody can make a token that fits one.
 */
export const createTokenDirectory = (
  replica: BucketReplica<TokenRecord>,
  limits: RateLimits,
  now: () => Date,
): TokenDirectory => ({
  find: async (token, address) => {
    const key = tokenKey(secretHash(token));
    let record = replica.get(key);
    if (record === undefined) {
      if (!isProjectToken(token)) return undefined;
      // Made a moment ago, perhaps: the mirror follows within milliseconds, and whoever holds a token does not wait.
      record = await limits.countWhileVerifying(address, () => replica.fetch(key, limits.countLookup));
    }
    const expired = record?.expiresAt !== undefined && Date.parse(record.expiresAt) <= now().getTime();
    return expired ? undefined : record;
  },
});
