import { httpConfig, logConfig, natsConfig, parseOpenKeys, proxyConfig, telemetryConfig, variables } from "@herald/kit";
import { z } from "zod";

/** http is for a provider on this machine alone: codes and secrets must not travel unencrypted. */
const isSafeIssuer = (text: string): boolean => {
  const url = URL.parse(text);
  // What is no URL at all is reported as that.
  return !url || url.protocol === "https:" || ["localhost", "127.0.0.1", "[::1]"].includes(url.hostname);
};

const isOrigin = (text: string): boolean => {
  const url = URL.parse(text);
  return !url || url.origin === text;
};

const maxPerWindow = 10_000_000;
const maxPerHour = 1_000_000_000;
/** The most that the broker counts in one response. */
const maxQueued = 100_000;

/** Sign-in by an identity provider, with OpenID Connect. Docs: docs/how-to/sign-in-with-your-company.md. */
const oidcConfig = {
  /**
   * The exact issuer of the identity provider that signs operators in; https except on this machine. Without it people sign in by
   * tokens alone.
   */
  HERALD_GATEWAY_OIDC_ISSUER: variables
    .url("https", "http")
    .refine(isSafeIssuer, "must be https, except on this machine")
    .optional(),
  /** Herald's client id at the identity provider. */
  HERALD_GATEWAY_OIDC_CLIENT_ID: variables.text().optional(),
  /** Herald's client secret, if the provider gave one. PKCE is always used. */
  HERALD_GATEWAY_OIDC_CLIENT_SECRET: variables.secret({ min: 1 }).optional(),
  /**
   * The origin, without a path, of the admin port as browsers reach it. The provider must allow the redirect address
   * `<this>/admin/v1/sign-in/callback`.
   */
  HERALD_GATEWAY_OIDC_URL: variables
    .url("https", "http")
    .refine(isOrigin, "must be an origin such as https://herald.example.com, without a path or a slash at its end")
    .optional(),
  /** The scopes to ask for, with blanks between them. Okta needs `groups` too. */
  HERALD_GATEWAY_OIDC_SCOPES: variables.text().default("openid profile email"),
  /** The claim with the person's groups: a list of texts, or one text. */
  HERALD_GATEWAY_OIDC_GROUPS_CLAIM: variables.text().default("groups"),
  /** A YAML file with the roles of groups. With it, only people of its groups, or with a role or grant, may sign in. */
  HERALD_GATEWAY_OIDC_GROUPS_FILE: variables.text().optional(),
  /** How long a session lasts, and with it the roles of a person who left a group. */
  HERALD_GATEWAY_OIDC_SESSION: variables.durationMs({ min: 900_000, max: 86_400_000 }).default(28_800_000),
};

/** The gateway's environment variables. */
const Variables = z.object({
  ...natsConfig,
  ...logConfig,
  ...telemetryConfig,
  ...httpConfig({ port: 8080, metricsPort: 9080 }),
  ...proxyConfig,
  /**
   * A second port, for operators: `/admin/v1`, `/console` and `/api/v1`. The first then serves only `/api/v1` and `/docs`, and accepts
   * no operator's credential. Without it, the first serves everything.
   */
  HERALD_GATEWAY_ADMIN_PORT: variables.port().optional(),
  /** The address of the admin port. In a container set `0.0.0.0`, and limit access by the published port or the network policy. */
  HERALD_GATEWAY_ADMIN_HOST: variables.host().default("127.0.0.1"),
  // As long as the random part of a project token.
  /** Grants everything under `/admin/v1`. */
  HERALD_ADMIN_TOKEN: variables.secret({ min: 24 }),
  /** Sign open tokens and encrypt the positions of event streams. Gateway and dispatch need the same value. */
  HERALD_OPEN_KEYS: variables.keyRing(parseOpenKeys, "signing"),
  /** Whether the gateway serves `/console`. */
  HERALD_GATEWAY_CONSOLE: variables.flag().default(true),
  // 0 by default, because otherwise clients could claim any address.
  /** How many proxies in front of the gateway are trusted for `X-Forwarded-For`. */
  HERALD_GATEWAY_TRUST_PROXY: variables.integer({ min: 0, max: 16 }).default(0),
  /** The same for the admin port. */
  HERALD_GATEWAY_ADMIN_TRUST_PROXY: variables.integer({ min: 0, max: 16 }).default(0),
  // Ten a second are far more than a misconfigured client needs, and far too few to guess a token.
  /** Refused credentials and opens per address in 10 seconds. */
  HERALD_GATEWAY_LIMIT_FAILURES: variables.integer({ min: 1, max: maxPerWindow }).default(100),
  // Sixty a second are enough for the many phones behind the address of a carrier.
  /** Requests without a credential per address in 10 seconds. Each costs the gateway 1 to 2 ms. */
  HERALD_GATEWAY_LIMIT_CLIENTS: variables.integer({ min: 1, max: maxPerWindow }).default(600),
  /** Open connections, of 15 to 32 KB each. Idle ones are closed first, so only this many requests at the same time exceed it. */
  HERALD_GATEWAY_LIMIT_CONNECTIONS: variables.integer({ min: 1, max: 1_000_000 }).default(2_000),
  // A carrier puts some thousand phones behind one address, of which few install an app in the same hour.
  /** New devices by client identity per address in an hour. */
  HERALD_GATEWAY_LIMIT_NEW_DEVICES: variables.integer({ min: 1, max: maxPerHour }).default(2_000),
  /** Open event streams. A client that stops reading costs half a MiB until it is disconnected. */
  HERALD_GATEWAY_LIMIT_STREAMS: variables.integer({ min: 0, max: 10_000 }).default(200),
  /**
   * Requests with all tokens of a project in 10 seconds. One token or operator may have half of them, the credential of one device a
   * hundredth.
   */
  HERALD_GATEWAY_LIMIT_PROJECT: variables.integer({ min: 1, max: maxPerWindow }).default(10_000),
  // 500 a second for half an hour. Stops an unnoticed loop before it has filled ledgers for a day.
  /** Notifications of a project in an hour. */
  HERALD_GATEWAY_QUOTA_SENDS: variables.integer({ min: 1, max: maxPerHour }).default(1_000_000),
  // 100 s at 500 a second while the database is unavailable.
  /** A project's notifications in the queue that all projects share. */
  HERALD_GATEWAY_QUOTA_QUEUED: variables.integer({ min: 1, max: maxQueued }).default(50_000),
  ...oidcConfig,
});

const ofProvider = ["HERALD_GATEWAY_OIDC_ISSUER", "HERALD_GATEWAY_OIDC_CLIENT_ID", "HERALD_GATEWAY_OIDC_URL"] as const;

export const GatewayConfig = Variables.superRefine((config, context) => {
  const needed = ofProvider.filter((name) => config[name] !== undefined);
  if (needed.length === 0 && config.HERALD_GATEWAY_OIDC_GROUPS_FILE === undefined) return;
  for (const name of ofProvider)
    if (config[name] === undefined)
      context.addIssue({
        code: "custom",
        path: [name],
        message: `is not set; sign-in needs all of ${ofProvider.join(", ")}`,
      });
  if (!config.HERALD_GATEWAY_OIDC_SCOPES.split(" ").includes("openid"))
    context.addIssue({ code: "custom", path: ["HERALD_GATEWAY_OIDC_SCOPES"], message: "must include openid" });
});
export type GatewayConfig = z.infer<typeof GatewayConfig>;
