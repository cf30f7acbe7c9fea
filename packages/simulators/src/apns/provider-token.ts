import { createPublicKey, type KeyObject, verify } from "node:crypto";
import { decodeJwt, decodeProtectedHeader } from "jose";
import { z } from "zod";
import { type Refusal, refuse } from "../script/apns-reasons.ts";
import type { ApnsKey } from "../types.ts";

const PublicKey = z.string().refine((pem) => {
  try {
    return createPublicKey(pem).asymmetricKeyType === "ec";
  } catch {
    return false;
  }
}, "the public half of a .p8 key, PEM");

/** A signing key that Apple has issued. */
export const ApnsKeyBody = z.strictObject({
  keyId: z.string().min(1),
  teamId: z.string().min(1),
  publicKey: PublicKey,
});

/** The identity to which a connection's first authenticated request binds it. */
export interface Authentication {
  teamId?: string;
  keyId?: string;
  /** The last accepted header, and until when (ms) it is accepted without another check. */
  authorization?: string;
  until?: number;
}

interface Token {
  readonly keyId: string;
  readonly teamId: string;
  readonly issuedAt: number;
}

const minute = 60_000;
/** "Refresh your token no more than once every 20 minutes and no less than once every 60 minutes." */
const maxAge = 60 * minute;
const minUpdate = 20 * minute;
/** Clocks differ a little. A token from further in the future is invalid. */
const maxSkew = minute;
/** How many verified tokens are cached. A sender uses a few at a time. */
const maxRemembered = 1000;

const invalid = (problem: string) => refuse("InvalidProviderToken", `authorization: ${problem}`);

/** Checks the `authorization` header of token-based connections. */
export function createProviderTokens({
  keys,
  limitUpdates,
  now,
}: {
  /** Verifies tokens of these keys' teams. For a team without a key here, checks only the token's form. */
  readonly keys: readonly ApnsKey[];
  /** Refuse a second new token of a key within 20 minutes. */
  readonly limitUpdates: boolean;
  readonly now: () => number;
}) {
  const known = new Map<string, { teamId: string; key: KeyObject }>();
  const teams = new Set<string>();
  const remembered = new Map<string, Token | Refusal>();
  const updates = new Map<string, { tokens: Set<string>; lastAt: number }>();

  const setKeys = (next: readonly ApnsKey[]) => {
    known.clear();
    teams.clear();
    remembered.clear();
    for (const { keyId, teamId, publicKey } of next) {
      known.set(keyId, { teamId, key: createPublicKey(publicKey) });
      teams.add(teamId);
    }
  };
  setKeys(keys);

  const signed = (jwt: string, key: KeyObject) => {
    const end = jwt.lastIndexOf(".");
    const signature = Buffer.from(jwt.slice(end + 1), "base64url");
    // JWS signatures are r and s concatenated (RFC 7518, 3.4), not DER.
    return verify("sha256", Buffer.from(jwt.slice(0, end)), { key, dsaEncoding: "ieee-p1363" }, signature);
  };

  const parse = (jwt: string): Token | Refusal => {
    try {
      const header = decodeProtectedHeader(jwt);
      const claims = decodeJwt(jwt);
      if (header.alg !== "ES256") return invalid(`alg is ${header.alg}, not ES256`);
      if (!header.kid) return invalid("the token's header has no kid");
      if (!claims.iss) return invalid("the token has no iss (the team id)");
      if (!Number.isInteger(claims.iat)) return invalid("the token has no iat in whole seconds");
      const token = { keyId: header.kid, teamId: claims.iss, issuedAt: Number(claims.iat) * 1000 };
      const owner = known.get(token.keyId);
      if (owner === undefined && !teams.has(token.teamId)) return token;
      if (owner === undefined) return invalid(`no key ${token.keyId}`);
      if (owner.teamId !== token.teamId) return invalid(`key ${token.keyId} is of another team`);
      if (!signed(jwt, owner.key)) return invalid("the signature does not verify");
      return token;
    } catch {
      return invalid("not a JWT");
    }
  };

  const tokenOf = (jwt: string): Token | Refusal => {
    const before = remembered.get(jwt);
    if (before !== undefined) return before;
    const parsed = parse(jwt);
    if (remembered.size >= maxRemembered) remembered.clear();
    remembered.set(jwt, parsed);
    return parsed;
  };

  const tooManyUpdates = ({ teamId, keyId }: Token, jwt: string, at: number) => {
    if (!limitUpdates) return false;
    const id = `${teamId}/${keyId}`;
    const update = updates.get(id);
    if (update === undefined) {
      updates.set(id, { tokens: new Set([jwt]), lastAt: at });
      return false;
    }
    if (update.tokens.has(jwt)) return false;
    if (at - update.lastAt < minUpdate) return true;
    update.tokens.add(jwt);
    update.lastAt = at;
    return false;
  };

  return {
    setKeys,

    /** Undefined when the request is authenticated; `connection` then stores the identity. */
    check(authorization: string | undefined, connection: Authentication): Refusal | undefined {
      const at = now();
      if (authorization !== undefined && authorization === connection.authorization && at < (connection.until ?? 0))
        return undefined;
      if (authorization === undefined)
        return refuse("MissingProviderToken", "authorization: missing, and no client certificate");
      const jwt = /^bearer +(\S+)$/i.exec(authorization)?.[1];
      if (jwt === undefined) return invalid("not `bearer <token>`");
      const token = tokenOf(jwt);
      if ("reason" in token) return token;
      const age = at - token.issuedAt;
      if (age > maxAge) return refuse("ExpiredProviderToken", "authorization: the token is older than 60 minutes");
      if (age < -maxSkew) return invalid("the token's iat is in the future");
      if (connection.teamId !== undefined && connection.teamId !== token.teamId) {
        return refuse("Forbidden", "authorization: this connection belongs to another team");
      }
      if (connection.keyId !== undefined && connection.keyId !== token.keyId) {
        return refuse("UnrelatedKeyIdInToken", "authorization: this connection began with another key");
      }
      if (tooManyUpdates(token, jwt, at)) {
        return refuse("TooManyProviderTokenUpdates", "authorization: a second new token within 20 minutes");
      }
      connection.teamId = token.teamId;
      connection.keyId = token.keyId;
      connection.authorization = authorization;
      connection.until = token.issuedAt + maxAge;
      return undefined;
    },
  };
}
