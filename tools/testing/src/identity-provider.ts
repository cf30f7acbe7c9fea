import { generateKeyPairSync, randomBytes } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import Provider, { type Configuration, type KoaContextWithOIDC } from "oidc-provider";

/** What the provider says of a person beside `sub`, such as `name`, `email` and `groups`. */
type Claims = Readonly<Record<string, unknown>>;

export type TestIdentityProvider = {
  readonly issuer: string;
  readonly clientId: string;
  readonly clientSecret: string;
  /** Claims by the name that a person types at the provider. */
  readonly people: Map<string, Claims>;
  /** The one gateway that the provider leads back to, by its origin. */
  readonly redirectTo: (origin: string) => void;
  /** The provider signs with a new key from now on, and publishes that one alone. */
  readonly rotateKeys: () => void;
  /** Goes through a sign-in as a browser does, up to the address that leads back, and the cookies to send there. */
  readonly signIn: (begin: string, person: string) => Promise<{ readonly callback: string; readonly cookie: string }>;
  readonly stop: () => Promise<void>;
};

const clientId = "herald";

const newKeys = () => {
  const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2_048 });
  const kid = randomBytes(8).toString("hex");
  return { keys: [{ ...privateKey.export({ format: "jwk" }), kid, alg: "RS256", use: "sig" }] };
};

/** A cookie jar for each origin. */
const createJars = () => {
  const jars = new Map<string, Map<string, string>>();
  const headerFor = (url: string): string =>
    [...(jars.get(new URL(url).origin) ?? [])].map(([name, value]) => `${name}=${value}`).join("; ");
  return {
    headerFor,
    fetch: async (url: string, init: RequestInit = {}) => {
      const headers = { ...init.headers, accept: "text/html", cookie: headerFor(url) };
      const response = await fetch(url, { ...init, redirect: "manual", headers });
      const jar = jars.get(new URL(url).origin) ?? new Map<string, string>();
      jars.set(new URL(url).origin, jar);
      for (const one of response.headers.getSetCookie()) {
        const [name = "", value = ""] = one.split(";", 1)[0]?.split(/=(.*)/s) ?? [];
        jar.set(name, value);
      }
      const location = response.headers.get("location");
      return location === null ? undefined : new URL(location, url).href;
    },
  };
};

const page = `<!doctype html><title>Test identity provider</title><form method="post">
<label>Name <input name="login" autofocus></label><button>Sign in</button></form>`;

/** Starts a real OpenID provider whose people need no password. Call `redirectTo` before the first sign-in. */
export const startIdentityProvider = async (): Promise<TestIdentityProvider> => {
  const clientSecret = randomBytes(32).toString("base64url");
  const people = new Map<string, Claims>();
  let serve: (request: IncomingMessage, response: ServerResponse) => void = () => {};
  const server = createServer((request, response) => serve(request, response));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

  let callback = `${issuer}/nowhere`;
  let keys = newKeys();
  const configuration: Configuration = {
    claims: { openid: ["sub", "groups", "roles", "hd"], profile: ["name", "preferred_username"], email: ["email"] },
    conformIdTokenClaims: false,
    cookies: { keys: [randomBytes(16).toString("hex")] },
    features: { devInteractions: { enabled: false } },
    findAccount: (_: KoaContextWithOIDC, id: string) => ({
      accountId: id,
      claims: async () => ({ ...people.get(id), sub: id }),
    }),
    interactions: { url: (_: KoaContextWithOIDC, { uid }: { readonly uid: string }) => `/interaction/${uid}` },
    // People are not asked for consent.
    loadExistingGrant: async ({ oidc }: KoaContextWithOIDC) => {
      const accountId = oidc.session?.accountId;
      const grant = new oidc.provider.Grant({ clientId, ...(accountId !== undefined && { accountId }) });
      grant.addOIDCScope("openid profile email");
      await grant.save();
      return grant;
    },
  };
  const publish = () => {
    const client = { client_id: clientId, client_secret: clientSecret, redirect_uris: [callback] };
    const clients = [{ ...client, post_logout_redirect_uris: [new URL("/console/", callback).href] }];
    const provider = new Provider(issuer, { ...configuration, clients, jwks: keys });
    const handle = provider.callback();
    const interact = async (request: IncomingMessage, response: ServerResponse) => {
      if (request.method === "GET") return void response.setHeader("content-type", "text/html").end(page);
      const accountId = new URLSearchParams(await text(request)).get("login") ?? "";
      await provider.interactionFinished(request, response, { login: { accountId } });
    };
    serve = (request, response) =>
      request.url?.startsWith("/interaction/")
        ? void interact(request, response).catch((error) => response.writeHead(500).end(String(error)))
        : void handle(request, response);
  };

  return {
    issuer,
    clientId,
    clientSecret,
    people,
    redirectTo: (origin) => {
      callback = `${origin}/admin/v1/sign-in/callback`;
      publish();
    },
    rotateKeys: () => {
      keys = newKeys();
      publish();
    },
    signIn: async (begin, person) => {
      const jars = createJars();
      for (let next: string | undefined = begin; next !== undefined; ) {
        if (next.startsWith(callback)) return { callback: next, cookie: jars.headerFor(begin) };
        const isLogin = next.startsWith(`${issuer}/interaction/`);
        next = await jars.fetch(next, isLogin ? { method: "POST", body: new URLSearchParams({ login: person }) } : {});
      }
      throw new Error("the sign-in ended before it came back");
    },
    stop: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
};
