import { cutText } from "@herald/contracts";
import { HeraldError, type Logger } from "@herald/kit";

/** What lets a sign-in fail until an operator corrects it. The console has a sentence for each. */
type Reason = "audience" | "client" | "clock" | "flow" | "issuer" | "nonce" | "redirect" | "scope" | "signature";

const retryAfterSeconds = 5;
const maxDescription = 300;

export const providerUnavailable = (why: string): HeraldError =>
  new HeraldError("identity-provider-unavailable", `sign-in: the identity provider ${why}`, { retryAfterSeconds });

export const tokenInvalid = (why: string, reason?: Reason): HeraldError =>
  new HeraldError("identity-token-invalid", `sign-in: ${why}`, { cause: { reason } });

const providerRefused = (why: string, reason?: Reason): HeraldError =>
  new HeraldError("identity-provider-refused", `sign-in: the identity provider ${why}`, { cause: { reason } });

/** The slug of a failed sign-in, with its reason if it has one: `identity-provider-refused.client`. */
export const signInFailureName = ({ code, cause }: HeraldError): string => {
  const { reason } = (cause ?? {}) as { readonly reason?: Reason };
  return reason === undefined ? code : `${code}.${reason}`;
};

/** RFC 6749, section 5.2, and RFC 6749, section 4.1.2.1: what an operator has to correct. */
type Correction = readonly [why: string, reason: Reason];
const noFlow: Correction = ["does not let Herald's client use the authorization code flow: allow it there", "flow"];
const oauthErrors = new Map<string, Correction>([
  [
    "invalid_client",
    [
      "does not accept Herald's client: check HERALD_GATEWAY_OIDC_CLIENT_ID and HERALD_GATEWAY_OIDC_CLIENT_SECRET",
      "client",
    ],
  ],
  ["invalid_scope", ["does not offer a scope of HERALD_GATEWAY_OIDC_SCOPES to Herald's client", "scope"]],
  ["unauthorized_client", noFlow],
  ["unsupported_response_type", noFlow],
  ["unsupported_grant_type", noFlow],
]);

const passing = ["server_error", "temporarily_unavailable"];

/** An OAuth error, from the redirect or from the token endpoint. */
const ofOauthError = (error: string, description: string, status?: number): HeraldError => {
  const said = description === "" ? error : `${error}: ${description}`;
  // RFC 6749 has 401 for a client alone. Of a wrong secret, Keycloak says `unauthorized_client`, and others `access_denied`.
  const name = status === 401 ? "invalid_client" : error;
  if (name === "access_denied")
    return new HeraldError("sign-in-not-permitted", "sign-in: the identity provider refused this person");
  // So Keycloak names a form that was left open for too long by someone who is signed in there.
  if (description === "authentication_expired")
    return new HeraldError("sign-in-expired", `sign-in: the sign-in took too long (${said}); sign in again`);
  if (passing.includes(name)) return providerUnavailable(`cannot sign people in at the moment (${said})`);
  // Keycloak and others say `invalid_grant` of both.
  if (name !== "invalid_client" && /redirect/i.test(description))
    return providerRefused(
      `does not accept the redirect address <HERALD_GATEWAY_OIDC_URL>/admin/v1/sign-in/callback (${said})`,
      "redirect",
    );
  if (name === "invalid_grant")
    return new HeraldError(
      "sign-in-expired",
      `sign-in: the code was used before or has expired (${said}); sign in again`,
    );
  const [why = "refuses the request", reason] = oauthErrors.get(name) ?? [];
  return providerRefused(`${why} (${said})`, reason);
};

/** What of an identity token is wrong, by the claim that was compared. */
const ofToken = (message: string, code: string, claim: string | undefined): HeraldError => {
  if (code === "OAUTH_JWT_TIMESTAMP_CHECK_FAILED")
    return tokenInvalid(
      "the identity token has expired or is not valid yet: compare the clocks of the gateway and of the provider",
      "clock",
    );
  if (claim === "aud" || claim === "azp")
    return tokenInvalid("the identity token is for another client than HERALD_GATEWAY_OIDC_CLIENT_ID", "audience");
  if (claim === "iss" || /issuer/.test(message))
    return tokenInvalid("the identity token is of another issuer than HERALD_GATEWAY_OIDC_ISSUER", "issuer");
  if (claim === "nonce") return tokenInvalid("the identity token belongs to another sign-in", "nonce");
  if (/signature|"alg"|verification key/.test(message) || code === "OAUTH_KEY_SELECTION_FAILED")
    return tokenInvalid("the identity token is not signed by a key that the provider publishes", "signature");
  return tokenInvalid("the identity token is not valid; the gateway's log says why");
};

type Described = { readonly error?: unknown; readonly error_description?: unknown; readonly status?: number };

/** Text of the provider for people: without control characters, and short. Undefined for anything else. */
export const shortText = (value: unknown, max: number): string | undefined =>
  typeof value === "string" ? cutText(value.replaceAll(/\p{C}/gu, "").trim(), max) || undefined : undefined;

/** A refusal whose reason is in the body beside a challenge, as RFC 6749 has it for a wrong client secret. */
const bodyOf = async (response: Response): Promise<Described> => {
  try {
    return { ...((await response.clone().json()) as Described | null), status: response.status };
  } catch {
    return { status: response.status };
  }
};

/** Why a sign-in failed, as an error for people. Logs what the provider said. */
export const signInFailureOf = async (error: unknown, log: Logger): Promise<HeraldError> => {
  const { AuthorizationResponseError, ClientError, ResponseBodyError, WWWAuthenticateChallengeError } = await import(
    "openid-client"
  );
  const cause = error instanceof Error ? error.cause : undefined;
  if (error instanceof HeraldError) return error;
  if (cause instanceof HeraldError) return cause;
  const said = async (): Promise<Described | undefined> => {
    if (error instanceof AuthorizationResponseError || error instanceof ResponseBodyError) return error;
    if (!(error instanceof WWWAuthenticateChallengeError)) return undefined;
    const body = await bodyOf(error.response);
    return { ...body, error: body.error ?? "invalid_client" };
  };
  const oauth = await said();
  if (oauth) {
    const text = (value: unknown): string => shortText(value, maxDescription) ?? "";
    const [name, description] = [text(oauth.error), text(oauth.error_description)];
    const failure = ofOauthError(name, description, oauth.status);
    log.warn({ error: name, description, failure: failure.message }, "the identity provider refused a sign-in");
    return failure;
  }
  const code = error instanceof ClientError ? (error.code ?? "") : "";
  const { claim } = ((cause as Error | undefined)?.cause ?? cause ?? {}) as { readonly claim?: string };
  const message = error instanceof Error ? [error.message, (cause as Error | undefined)?.message].join(" ") : "";
  const failure = ["", "OAUTH_TIMEOUT", "OAUTH_RESPONSE_IS_NOT_CONFORM"].includes(code)
    ? providerUnavailable("does not answer")
    : ofToken(message, code, claim);
  log.warn({ err: error, failure: failure.message }, "a sign-in by the identity provider failed");
  return failure;
};
