import { createPrivateKey, hash } from "node:crypto";
import { createByteCache } from "@herald/kit";
import { SignJWT } from "jose";

export type ApnsSigningKey = { readonly key_id: string; readonly team_id: string; readonly private_key: string };

/** The `authorization` of one signing key. */
export type ProviderToken = {
  /** A header value; a promise only when a new one must be signed. */
  current(): string | Promise<string>;
  /**
   * Apple calls `stale` expired: a new one, or the one that somebody else had renewed meanwhile. Undefined when the last
   * renewal is so fresh that another would earn 429 TooManyProviderTokenUpdates, or the clock here is wrong.
   */
  renew(stale: string): Promise<string> | undefined;
};

export type ProviderTokens = { of(key: ApnsSigningKey): ProviderToken };

const minuteMs = 60_000;
/** Apple takes a token for 60 minutes; ten are left for what waits and for clocks that differ. */
const refreshMs = 50 * minuteMs;
/** "Update no more than once every 20 minutes." */
const renewalPauseMs = 20 * minuteMs;

/** More keys than clients that may be open: one that is forgotten and comes again soon would be signed for more often than Apple likes. */
const tokensBytes = 16 * 1_048_576;
/** The key and its token. */
const tokenBytes = 1_024;

/** One token for each key, whatever projects and connections use it, because Apple counts how often a key changes its token. */
export function createProviderTokens(now: () => Date): ProviderTokens {
  const known = createByteCache<string, ProviderToken>({
    name: "apns-provider-tokens",
    maxBytes: tokensBytes,
    sizeOf: () => tokenBytes,
  });
  return {
    of(key) {
      // The key is part of it: a project with a wrong key must not sign for one with the right key.
      const id = hash("sha256", `${key.team_id}/${key.key_id}/${key.private_key}`);
      const token = known.get(id) ?? createProviderToken(key, now);
      known.set(id, token);
      return token;
    },
  };
}

function createProviderToken({ key_id, team_id, private_key }: ApnsSigningKey, now: () => Date): ProviderToken {
  const key = createPrivateKey(private_key);
  let token: { readonly header: string; readonly issuedAt: number } | undefined;
  let signing: Promise<string> | undefined;
  let renewedAt = Number.NEGATIVE_INFINITY;

  const sign = async (): Promise<string> => {
    const issuedAt = now().getTime();
    const jwt = await new SignJWT({ iss: team_id, iat: Math.floor(issuedAt / 1_000) })
      .setProtectedHeader({ alg: "ES256", kid: key_id })
      .sign(key);
    token = { header: `bearer ${jwt}`, issuedAt };
    return token.header;
  };
  const signOnce = (): Promise<string> => {
    signing ??= sign().finally(() => {
      signing = undefined;
    });
    return signing;
  };

  return {
    current() {
      const age = token === undefined ? Number.POSITIVE_INFINITY : now().getTime() - token.issuedAt;
      // A clock that was set back leaves a token from the future, which Apple refuses too.
      return token !== undefined && age < refreshMs && age >= -minuteMs ? token.header : signOnce();
    },
    renew(stale) {
      if (token !== undefined && token.header !== stale) return Promise.resolve(token.header);
      if (signing !== undefined) return signing;
      const at = now().getTime();
      if (at - renewedAt < renewalPauseMs) return undefined;
      renewedAt = at;
      return signOnce();
    },
  };
}
