import { randomBytes } from "node:crypto";
import { decodeJwt, decodeProtectedHeader, errors, importSPKI, jwtVerify } from "jose";
import type { ProviderReply } from "../exchange.ts";
import type { FcmAccount } from "../types.ts";

const grantType = "urn:ietf:params:oauth:grant-type:jwt-bearer";
/** Google's libraries put this address into every assertion, even if they send it elsewhere. */
const googleAudience = "https://oauth2.googleapis.com/token";
const scopes = ["https://www.googleapis.com/auth/firebase.messaging", "https://www.googleapis.com/auth/cloud-platform"];
/** Google's access tokens are valid for an hour minus a second. */
const lifetimeSeconds = 3599;
const maxAssertionSeconds = 3600;
/** Clocks differ a little. */
const skewSeconds = 60;

const answer = (status: number, body: object): ProviderReply => ({
  status,
  headers: { "content-type": "application/json; charset=utf-8", "cache-control": "no-store" },
  body: JSON.stringify(body),
});

/** An error in OAuth's shape (RFC 6749, 5.2). */
export const oauthError = (status: number, error: string, problem: string): ProviderReply => ({
  ...answer(status, { error, error_description: problem }),
  reason: error,
  problem,
});

const refuse = (error: string, problem: string) => oauthError(400, error, problem);

interface Grant {
  readonly account: FcmAccount | undefined;
  readonly expiresAt: number;
}

interface TokenEndpointOptions {
  /** Without any, every signature is accepted and only the assertion's form is checked. */
  readonly accounts: readonly FcmAccount[];
  /** This simulator's own `/token`, also a valid audience. */
  readonly audience: () => string;
  readonly now: () => number;
}

/** Google's OAuth 2.0 token endpoint for service accounts (RFC 7523). */
export function createTokenEndpoint({ accounts, audience, now }: TokenEndpointOptions) {
  const known = new Map(accounts.map((account) => [account.clientEmail, account]));
  const grants = new Map<string, Grant>();
  let issued = 0;

  /** @returns the error in Google's terms, else the account if it is known */
  const accountOf = async (assertion: string): Promise<ProviderReply | FcmAccount | undefined> => {
    let claims: ReturnType<typeof decodeJwt>;
    try {
      if (decodeProtectedHeader(assertion).alg !== "RS256")
        return refuse("invalid_grant", "assertion: alg is not RS256");
      claims = decodeJwt(assertion);
    } catch {
      return refuse("invalid_grant", "assertion: not a JWT");
    }
    const { iss, aud, iat, exp, scope } = claims;
    if (!iss) return refuse("invalid_grant", "assertion: no iss (the service account's e-mail)");
    if (aud !== googleAudience && aud !== audience())
      return refuse("invalid_grant", `assertion: aud is not ${googleAudience}`);
    const seconds = now() / 1000;
    if (iat === undefined || exp === undefined || exp - iat > maxAssertionSeconds) {
      return refuse("invalid_grant", "assertion: iat and exp at most an hour apart");
    }
    if (iat > seconds + skewSeconds || exp < seconds - skewSeconds)
      return refuse("invalid_grant", "assertion: not valid at this time");
    const wanted = typeof scope === "string" ? scope.split(" ") : [];
    if (!wanted.some((each) => scopes.includes(each)))
      return refuse("invalid_scope", `assertion: scope has none of ${scopes.join(", ")}`);
    if (known.size === 0) return undefined;
    const account = known.get(iss);
    if (account === undefined) return refuse("invalid_grant", "Invalid grant: account not found");
    try {
      await jwtVerify(assertion, await importSPKI(account.publicKey, "RS256"), {
        currentDate: new Date(now()),
        clockTolerance: skewSeconds,
      });
      return account;
    } catch (error) {
      if (error instanceof errors.JOSEError) return refuse("invalid_grant", "Invalid JWT Signature.");
      throw error;
    }
  };

  return {
    /** The issuer in an assertion, unverified, for a script to match. */
    issuerOf(body: string): string {
      try {
        return decodeJwt(new URLSearchParams(body).get("assertion") ?? "").iss ?? "";
      } catch {
        return "";
      }
    },

    /** Answers one token request. */
    async grant(contentType: string | undefined, body: string): Promise<ProviderReply> {
      if (!contentType?.startsWith("application/x-www-form-urlencoded")) {
        return refuse("invalid_request", "content-type: not application/x-www-form-urlencoded");
      }
      const form = new URLSearchParams(body);
      if (form.get("grant_type") !== grantType) return refuse("unsupported_grant_type", `grant_type: not ${grantType}`);
      const account = await accountOf(form.get("assertion") ?? "");
      if (account !== undefined && "status" in account) return account;
      const token = `ya29.simulated.${randomBytes(24).toString("base64url")}`;
      grants.set(token, { account, expiresAt: now() + lifetimeSeconds * 1000 });
      issued += 1;
      return answer(200, { access_token: token, expires_in: lifetimeSeconds, token_type: "Bearer" });
    },

    /** The grant of an access token; undefined for an unknown or expired token. */
    holder(token: string): Grant | undefined {
      const grant = grants.get(token);
      return grant !== undefined && grant.expiresAt > now() ? grant : undefined;
    },

    issued: () => issued,
  };
}
