import { isProjectToken, secretHash, type TokenRecord, tokenKey } from "@herald/contracts";
import type { RateLimits } from "../limits/rate-limits.ts";
import type { BucketReplica } from "./replicate-bucket.ts";

export type TokenDirectory = {
  /** The record of a project token; undefined when it is malformed, unknown, revoked or expired. */
  readonly find: (token: string, address: string) => Promise<TokenRecord | undefined>;
};

/**
 * Project tokens by their hash. A lookup by hash needs no constant-time comparison: timing could only reveal the hash, and no token can
 * be derived from it.
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
      // The token may be new: replication takes milliseconds, and a new token must work at once.
      record = await limits.countWhileVerifying(address, () => replica.fetch(key, limits.countLookup));
    }
    const expired = record?.expiresAt !== undefined && Date.parse(record.expiresAt) <= now().getTime();
    return expired ? undefined : record;
  },
});
