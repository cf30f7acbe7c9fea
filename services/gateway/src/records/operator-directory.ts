import { hash, timingSafeEqual } from "node:crypto";
import { isOperatorToken, type OperatorRecord, secretHash } from "@herald/contracts";
import type { ActingOperator } from "../auth/caller.ts";
import type { RateLimits } from "../limits/rate-limits.ts";
import type { BucketReplica } from "./replicate-bucket.ts";

export type OperatorDirectory = {
  /** The operator of a token; undefined when it is unknown or replaced, or its operator was deleted. */
  readonly find: (token: string, address: string) => Promise<ActingOperator | undefined>;
  /** The operator whose current token has this hash, with its current role. */
  readonly findByHash: (tokenHash: string) => ActingOperator | undefined;
};

const digest = (text: string): Buffer => hash("sha256", text, "buffer");

/** Operators by the hash of their token, and the holder of HERALD_ADMIN_TOKEN as `root`. */
export const createOperatorDirectory = (
  adminToken: string,
  replica: BucketReplica<OperatorRecord>,
  limits: RateLimits,
): OperatorDirectory => {
  const adminDigest = digest(adminToken);
  const root: ActingOperator = { id: "root", name: "root", role: "admin", tokenHash: secretHash(adminToken) };
  const acting = (record: OperatorRecord | undefined, tokenHash: string) => record && { ...record, tokenHash };
  return {
    find: async (token, address) => {
      if (timingSafeEqual(digest(token), adminDigest)) return root;
      if (!isOperatorToken(token)) return undefined;
      const key = secretHash(token);
      // A new token must work at once, and replication takes milliseconds.
      const record =
        replica.get(key) ?? (await limits.countWhileVerifying(address, () => replica.fetch(key, limits.countLookup)));
      return acting(record, key);
    },
    findByHash: (tokenHash) => (tokenHash === root.tokenHash ? root : acting(replica.get(tokenHash), tokenHash)),
  };
};
