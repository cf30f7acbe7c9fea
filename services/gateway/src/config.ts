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
   * The identity provider that signs operators in: its exact issuer, https except on this machine. Without it people sign in by
   * tokens alone.
   */
  HERALD_GATEWAY_OIDC_ISSUER: variables
    .url("https", "http")
    .refine(isSafeIssuer, "must be https, except on this machine")
    .optional(),
  /** Herald's client id at the identity provider. */
  HERALD_GATEWAY_OIDC_CLIENT_ID: variables.text().optional(),
  /** Herald's client secret, if the provider gave one. PKCE is used with and without it. */
  HERALD_GATEWAY_OIDC_CLIENT_SECRET: variables.secret({ min: 1 }).optional(),
  /**
   * The origin of the admin port as browsers reach it, without a path. The provider must allow the redirect address
   * `<this>/admin/v1/sign-in/callback`.
   */
  HERALD_GATEWAY_OIDC_URL: variables
    .url("https", "http")
    .refine(isOrigin, "must be an origin such as https://herald.example.com, without a path or a slash at its end")
    .optional(),
  /** The scopes to ask for, with blanks between them. Okta needs `groups` too. */
  HERALD_GATEWAY_OIDC_SCOPES: variables.text().default("openid profile email"),
  /** The claim of the identity token with the person's groups: a list of texts, or one text. */
  HERALD_GATEWAY_OIDC_GROUPS_CLAIM: variables.text().default("groups"),
  /** A YAML file with the roles of groups. With it, only people of its groups, and those with a role or grant, may sign in. */
  HERALD_GATEWAY_OIDC_GROUPS_FILE: variables.text().optional(),
  /** How long a session lasts. A person who leaves a group keeps its roles for as long at most. */
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
   * A second port, for operators: `/admin/v1`, `/console` and `/api/v1`. The first port then serves only `/api/v1` and `/docs`,
   * and accepts no credential of an operator. Without it, the first port serves everything.
   */
  HERALD_GATEWAY_ADMIN_PORT: variables.port().optional(),
  /**
   * The address that the admin port listens on. In a container set `0.0.0.0`, and limit access by the published port or the
   * network policy.
   */
  HERALD_GATEWAY_ADMIN_HOST: variables.host().default("127.0.0.1"),
  /** Grants everything under `/admin/v1`, so it must be as long as the random part of a project token. */
  HERALD_ADMIN_TOKEN: variables.secret({ min: 24 }),
  /** The keys that sign open tokens and encrypt the positions of event streams. Gateway and dispatch need the same value. */
  HERALD_OPEN_KEYS: variables.keyRing(parseOpenKeys, "signing"),
  /** Whether the gateway serves the console for operators at `/console`. */
  HERALD_GATEWAY_CONSOLE: variables.flag().default(true),
  /**
   * The number of proxies in front of the gateway whose `X-Forwarded-For` is trusted. 0 by default, because otherwise clients
   * could claim any address.
   */
  HERALD_GATEWAY_TRUST_PROXY: variables.integer({ min: 0, max: 16 }).default(0),
  /** The same for the admin port, which most operators reach without the proxies of the public port. */
  HERALD_GATEWAY_ADMIN_TRUST_PROXY: variables.integer({ min: 0, max: 16 }).default(0),
  /**
   * Refused credentials and opens per address in 10 seconds. Ten a second are far more than a misconfigured client needs and far
   * too few to guess a token. Valid requests are never counted.
   */
  HERALD_GATEWAY_LIMIT_FAILURES: variables.integer({ min: 1, max: maxPerWindow }).default(100),
  /**
   * Requests without a credential per address in 10 seconds: by client identity, for documents, to unknown paths. Sixty a second
   * are enough for the many phones behind one carrier address, and cost the gateway 1 to 2 ms each.
   */
  HERALD_GATEWAY_LIMIT_CLIENTS: variables.integer({ min: 1, max: maxPerWindow }).default(600),
  /**
   * Open connections. Each costs about 15 KB, up to 32 KB while its headers arrive. When the limit is reached, idle connections
   * are closed first, so only this many requests at the same time exceed it.
   */
  HERALD_GATEWAY_LIMIT_CONNECTIONS: variables.integer({ min: 1, max: 1_000_000 }).default(2_000),
  /**
   * New devices by client identity per address in an hour. A carrier puts some thousand phones behind one address, of which few
   * install an app in the same hour; a stranger at one address stays far from a project's quota. Known devices are never counted.
   */
  HERALD_GATEWAY_LIMIT_NEW_DEVICES: variables.integer({ min: 1, max: maxPerHour }).default(2_000),
  /** Open event streams. A client that stops reading costs about half a MiB until it is disconnected. */
  HERALD_GATEWAY_LIMIT_STREAMS: variables.integer({ min: 0, max: 10_000 }).default(200),
  /**
   * Requests with all tokens of a project in 10 seconds. A thousand a second are a fraction of what a gateway can serve. One token, or one
   * operator, may have half of them, and the credential of one device a hundredth.
   */
  HERALD_GATEWAY_LIMIT_PROJECT: variables.integer({ min: 1, max: maxPerWindow }).default(10_000),
  /**
   * Notifications of a project in an hour. It allows 500 a second for half an hour, and stops an unnoticed loop before it has
   * filled ledgers for a day.
   */
  HERALD_GATEWAY_QUOTA_SENDS: variables.integer({ min: 1, max: maxPerHour }).default(1_000_000),
  /**
   * A project's notifications that wait in the queue that all projects share. The default lasts 100 s at 500 a second while the
   * database is unavailable.
   */
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
