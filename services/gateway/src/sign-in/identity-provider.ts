import { cutText } from "@herald/contracts";
import { createProxyAgent, HeraldError, type Logger, type OutboundProxy, ProxyError } from "@herald/kit";
import type { ClientAuth, Configuration, CustomFetch, IDToken, ServerMetadata } from "openid-client";
import { fetchViaAgent } from "./fetch-via-agent.ts";
import { providerUnavailable, shortText, signInFailureOf, tokenInvalid } from "./sign-in-failure.ts";

export type IdentityProviderOptions = {
  readonly issuer: string;
  readonly clientId: string;
  readonly clientSecret: string | undefined;
  /** Where the provider sends people back to. */
  readonly callback: string;
  /** The page after a sign-out. */
  readonly home: string;
  readonly scopes: string;
  readonly groupsClaim: string;
  readonly proxy?: OutboundProxy | undefined;
  readonly now: () => Date;
  readonly log: Logger;
};

/** What the browser keeps while the provider signs the person in. */
export type SignInFlow = { readonly state: string; readonly nonce: string; readonly verifier: string };

/** What the provider says of a person. */
export type Person = {
  readonly subject: string;
  readonly name: string;
  readonly email: string | undefined;
  readonly groups: readonly string[];
  /** By which the provider knows whose session a sign-out ends. */
  readonly loginHint: string | undefined;
};

export type IdentityProvider = ReturnType<typeof createIdentityProvider>;

const timeoutSeconds = 5;
/** Providers change their addresses rarely, and keys are read at each sign-in. */
const metadataMs = 600_000;
/** Anyone may begin a sign-in: a provider that fails is asked by the first of them. */
const failedMs = 5_000;
/** A token with a thousand groups has 40 KB. */
const maxAnswerBytes = 262_144;
const maxGroups = 1_000;
const maxName = 100;
const maxEmail = 254;
const maxHint = 512;
const maxSubject = 255;
/** Clocks of two companies differ by seconds. */
const toleranceSeconds = 30;

const isLoopback = ({ hostname }: URL): boolean => ["localhost", "127.0.0.1", "[::1]"].includes(hostname);

const readAtMost = async (response: Response): Promise<Uint8Array<ArrayBuffer>> => {
  const parts: Uint8Array[] = [];
  let bytes = 0;
  for await (const part of response.body ?? []) {
    bytes += part.length;
    if (bytes > maxAnswerBytes) throw tokenInvalid(`the identity provider answered more than ${maxAnswerBytes} bytes`);
    parts.push(part);
  }
  return Buffer.concat(parts);
};

/** Bounds what a provider can make the gateway read, and never sends a secret unencrypted to another host. */
const createBoundedFetch = ({ proxy, log }: Pick<IdentityProviderOptions, "proxy" | "log">): CustomFetch => {
  const agent = proxy && createProxyAgent((server) => proxy.dialTo(server), {});
  const ask = async (url: URL, options: RequestInit): Promise<Response> => {
    if (agent === undefined || url.protocol !== "https:") return fetch(url, options);
    try {
      return await fetchViaAgent(agent, url, options);
    } catch (error) {
      if (!(error instanceof ProxyError)) throw error;
      log.warn({ err: error }, "the identity provider cannot be reached through the proxy");
      throw providerUnavailable("cannot be reached through the proxy; the gateway's log says why");
    }
  };
  return async (address, options) => {
    const url = new URL(address);
    if (url.protocol !== "https:" && !isLoopback(url))
      throw tokenInvalid("an address of the identity provider is not https");
    const response = await ask(url, { ...options, redirect: "manual" } as RequestInit);
    const body = await readAtMost(response);
    const { status, statusText, headers } = response;
    return new Response(body.length > 0 ? body : null, { status, statusText, headers });
  };
};

const groupsIn = (claim: unknown): readonly string[] => {
  if (claim === undefined) return [];
  const groups: unknown = typeof claim === "string" ? [claim] : claim;
  if (!Array.isArray(groups) || !groups.every((group) => typeof group === "string"))
    throw tokenInvalid("the groups of the identity token are not a list of texts");
  if (groups.length > maxGroups) throw tokenInvalid(`the identity token has more than ${maxGroups} groups`);
  return groups;
};

const personOf = (claims: IDToken, groupsClaim: string, now: Date): Person => {
  const { sub: subject, iat } = claims;
  if (subject === "" || subject.length > maxSubject)
    throw tokenInvalid(`the subject must have 1 to ${maxSubject} characters`);
  if (iat > now.getTime() / 1_000 + toleranceSeconds)
    throw tokenInvalid(
      "the identity token was issued in the future: compare the clocks of the gateway and of the provider",
      "clock",
    );
  const email = shortText(claims.email, maxEmail);
  return {
    subject,
    name:
      shortText(claims.name, maxName) ??
      shortText(claims.preferred_username, maxName) ??
      email ??
      cutText(subject, maxName),
    email,
    groups: groupsIn(claims[groupsClaim]),
    loginHint: shortText(claims.login_hint, maxHint) ?? shortText(claims.preferred_username, maxName) ?? email,
  };
};

/** Keycloak ignores `select_account`, and says so; Google and Entra offer a choice of accounts, and say nothing. */
const promptOf = ({ prompt_values_supported: values }: ServerMetadata): string =>
  Array.isArray(values) && !values.includes("select_account") ? "login" : "select_account";

/** Signs people in by OpenID Connect: the authorization code flow with PKCE. Its library is imported at the first sign-in. */
export const createIdentityProvider = (options: IdentityProviderOptions) => {
  const { issuer, clientId, clientSecret, callback, home, scopes, groupsClaim, now, log } = options;
  const boundedFetch = createBoundedFetch(options);
  const library = () => import("openid-client");
  /** What the provider answered, or its failure, and when it is asked again; `Infinity` while it is asked. */
  let known: { readonly metadata: Promise<ServerMetadata>; until: number } | undefined;

  const clientAuth = async ({
    token_endpoint_auth_methods_supported: methods,
  }: ServerMetadata): Promise<ClientAuth> => {
    const { ClientSecretBasic, ClientSecretPost, None } = await library();
    if (clientSecret === undefined) return None();
    return methods?.includes("client_secret_post") ? ClientSecretPost(clientSecret) : ClientSecretBasic(clientSecret);
  };

  const insecure = async () => (new URL(issuer).protocol === "http:" ? [(await library()).allowInsecureRequests] : []);

  /** Throws identity-provider-unavailable. */
  const readMetadata = async (): Promise<ServerMetadata> => {
    const { discovery, customFetch } = await library();
    const settings = { execute: await insecure(), timeout: timeoutSeconds, [customFetch]: boundedFetch };
    try {
      return (await discovery(new URL(issuer), clientId, undefined, undefined, settings)).serverMetadata();
    } catch (error) {
      const cause = error instanceof Error ? error.cause : undefined;
      for (const known of [error, cause]) if (known instanceof HeraldError) throw known;
      log.warn({ err: error }, "cannot read the configuration of the identity provider");
      throw providerUnavailable(
        `does not answer as HERALD_GATEWAY_OIDC_ISSUER (${(error as Error).message}); try <issuer>/.well-known/openid-configuration`,
      );
    }
  };

  const discover = (): Promise<ServerMetadata> => {
    if (known && known.until > now().getTime()) return known.metadata;
    const asked: NonNullable<typeof known> = { metadata: readMetadata(), until: Number.POSITIVE_INFINITY };
    const keepFor = (ms: number) => () => {
      asked.until = now().getTime() + ms;
    };
    asked.metadata.then(keepFor(metadataMs), keepFor(failedMs));
    known = asked;
    return asked.metadata;
  };

  /** A configuration for one sign-in: it reads the provider's keys, so that rotated keys work at once. */
  const configure = async (): Promise<Configuration> => {
    const client = await library();
    const metadata = await discover();
    const settings = { [client.clockTolerance]: toleranceSeconds };
    const config = new client.Configuration(metadata, clientId, settings, await clientAuth(metadata));
    config.timeout = timeoutSeconds;
    config[client.customFetch] = boundedFetch;
    // Without it the library trusts TLS and verifies no signature.
    client.enableNonRepudiationChecks(config);
    for (const allow of await insecure()) allow(config);
    return config;
  };

  return {
    issuer,
    /**
     * Begins a sign-in: the provider's address for the browser. `again`: after a refusal, so the provider must not take the account that is
     * signed in there. Throws identity-provider-unavailable.
     */
    begin: async (again = false): Promise<{ readonly address: string; readonly flow: SignInFlow }> => {
      const config = await configure();
      const client = await library();
      const [state, nonce, verifier] = [client.randomState(), client.randomNonce(), client.randomPKCECodeVerifier()];
      const address = client.buildAuthorizationUrl(config, {
        redirect_uri: callback,
        scope: scopes,
        state,
        nonce,
        code_challenge: await client.calculatePKCECodeChallenge(verifier),
        code_challenge_method: "S256",
        ...(again && { prompt: promptOf(config.serverMetadata()) }),
      });
      return { address: address.href, flow: { state, nonce, verifier } };
    },
    /**
     * Exchanges the provider's code, in the query of the callback, for what it says of the person. `onToken` is called when the provider has
     * answered with a token, valid or not. Throws sign-in-expired, sign-in-not-permitted, identity-token-invalid or
     * identity-provider-unavailable.
     */
    finish: async (query: string, { state, nonce, verifier }: SignInFlow, onToken: () => void): Promise<Person> => {
      const config = await configure();
      const client = await library();
      const { token_endpoint: tokenEndpoint } = config.serverMetadata();
      config[client.customFetch] = async (url, request) => {
        const response = await boundedFetch(url, request);
        if (url === tokenEndpoint && response.ok) onToken();
        return response;
      };
      try {
        const tokens = await client.authorizationCodeGrant(config, new URL(`${callback}?${query}`), {
          expectedState: state,
          expectedNonce: nonce,
          pkceCodeVerifier: verifier,
          idTokenExpected: true,
        });
        const claims = tokens.claims();
        if (claims === undefined) throw tokenInvalid("the identity provider sent no identity token");
        return personOf(claims, groupsClaim, now());
      } catch (error) {
        throw await signInFailureOf(error, log);
      }
    },
    /** Where the browser ends its session at the provider; undefined if the provider has no such page. */
    logoutUrl: async (loginHint: string | undefined): Promise<string | undefined> => {
      const config = await configure();
      if (config.serverMetadata().end_session_endpoint === undefined) return undefined;
      const { buildEndSessionUrl } = await library();
      const hint = loginHint !== undefined && { logout_hint: loginHint };
      return buildEndSessionUrl(config, { post_logout_redirect_uri: home, ...hint }).href;
    },
  };
};
