import { hash } from "node:crypto";
import type { Bucket } from "@herald/bus";
import {
  isSessionSecret,
  isSignInCode,
  maxSessions,
  newSessionSecret,
  newSignInCode,
  type SessionRecord,
  secretHash,
  sessionKey,
  sessionMs,
  signInCodeKey,
  signInCodeMs,
} from "@herald/contracts";
import { type ActingOperator, invalidCredential, type OperatorSession } from "./caller.ts";
import { type BucketReplica, readRecord } from "./directories.ts";
import type { RateLimits } from "./rate-limits.ts";

type Deps = {
  readonly replica: BucketReplica<SessionRecord>;
  /** Throws bus-unavailable. */
  readonly bucket: () => Bucket<SessionRecord>;
  readonly limits: RateLimits;
  readonly now: () => Date;
};

/** Derived from the cookie's secret, so only the secret's holder has it and it need not be stored. */
const csrfTokenOf = (secret: string): string => hash("sha256", `csrf/${secret}`, "base64url");

export type Sessions = ReturnType<typeof createSessionStore>;

/** Sessions and sign-in codes of operators. They are stored in a bucket of the bus: every gateway knows them, without a database. */
export const createSessionStore = ({ replica, bucket, limits, now }: Deps) => {
  const isOver = ({ expiresAt }: SessionRecord): boolean => Date.parse(expiresAt) <= now().getTime();
  const after = (ms: number): Date => new Date(now().getTime() + ms);

  const ofOperator = ({ tokenHash, signedOutAt }: ActingOperator) => ({
    operatorTokenHash: tokenHash,
    ...(signedOutAt !== undefined && { signedOutAt }),
  });

  /** Ends the oldest sessions of an operator who has no room for another. */
  const makeRoom = async (operatorTokenHash: string): Promise<void> => {
    const own = [...replica.entries()]
      .filter(([key, one]) => key.startsWith(sessionKey("")) && one.operatorTokenHash === operatorTokenHash)
      .toSorted(([, one], [, other]) => Date.parse(one.expiresAt) - Date.parse(other.expiresAt));
    const oldest = own.slice(0, Math.max(0, own.length - maxSessions + 1));
    await Promise.all(oldest.map(([key]) => bucket().delete(key)));
  };

  return {
    /** Starts a session of 8 h; the operator's oldest ends if it has 20. `secret` is the cookie's value. */
    start: async (operator: ActingOperator) => {
      await makeRoom(operator.tokenHash);
      const secret = newSessionSecret();
      const sessionHash = secretHash(secret);
      const expiresAt = after(sessionMs);
      const record = { ...ofOperator(operator), expiresAt: expiresAt.toISOString() };
      await bucket().create(sessionKey(sessionHash), record, { ttlMs: sessionMs });
      return { secret, hash: sessionHash, csrfToken: csrfTokenOf(secret), expiresAt };
    },

    /** The session of a cookie; undefined when it is unknown, expired or ended. Does not check that its operator still exists. */
    find: async (secret: string, address: string) => {
      if (!isSessionSecret(secret)) return undefined;
      const sessionHash = secretHash(secret);
      const record = await readRecord(replica, limits, sessionKey(sessionHash), address);
      if (record === undefined || isOver(record)) return undefined;
      return { ...record, hash: sessionHash, csrfToken: csrfTokenOf(secret), expiresAt: new Date(record.expiresAt) };
    },

    end: ({ hash: sessionHash }: OperatorSession) => bucket().delete(sessionKey(sessionHash)),

    /** Creates a sign-in code that can be exchanged once within 10 minutes. */
    createCode: async (operator: ActingOperator) => {
      const code = newSignInCode();
      const expiresAt = after(signInCodeMs);
      const record = { ...ofOperator(operator), expiresAt: expiresAt.toISOString() };
      await bucket().create(signInCodeKey(secretHash(code)), record, { ttlMs: signInCodeMs });
      return { code, expiresAt };
    },

    /**
     * Redeems a code. Resolves to its record, which does not prove that its operator still exists or was not signed out.
     * Throws unauthenticated when the code is unknown, used or expired.
     */
    redeemCode: async (code: string, address: string) => {
      const key = signInCodeKey(secretHash(code));
      const entry = isSignInCode(code) ? await limits.countWhileVerifying(address, () => bucket().get(key)) : undefined;
      const refuse = async (why: string): Promise<never> => {
        await limits.countFailure(address);
        throw invalidCredential(`code: ${why}; create another with POST /admin/v1/sessions/codes`);
      };
      if (entry === undefined) return refuse("is unknown or expired");
      const { value, revision } = entry;
      if (isOver(value)) return refuse("has expired");
      if (value.usedAt !== undefined) return refuse("was used before");
      // Of two concurrent exchanges of a code, only one can replace the revision that both have read.
      const used = { ...value, usedAt: now().toISOString() };
      if (!(await bucket().update(key, used, revision, { ttlMs: signInCodeMs }))) return refuse("was used before");
      return value;
    },
  };
};
