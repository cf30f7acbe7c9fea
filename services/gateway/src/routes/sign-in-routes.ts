import { hash, timingSafeEqual } from "node:crypto";
import type { IncomingMessage } from "node:http";
import {
  identityHash,
  ReturnTo,
  SignInOperator,
  SignInQuery,
  SignInWays,
  sessionCookieName,
  signInCookieName,
} from "@herald/contracts";
import { HeraldError, hasCode } from "@herald/kit";
import { z } from "zod";
import { invalidCredential, noCredential } from "../auth/caller.ts";
import { cookieOf } from "../auth/request-credentials.ts";
import type { RouteDeps } from "../deps.ts";
import { cookie, ok } from "../http/reply.ts";
import { dataOf, defineRoute } from "../http/route.ts";
import type { IdentityProvider } from "../sign-in/identity-provider.ts";

/** Long enough for a second factor; a code of the provider lives shorter. */
const flowMs = 600_000;
const callbackPath = "/admin/v1/sign-in/callback";
const home = "/console/";

const Flow = z.object({ state: z.string(), nonce: z.string(), verifier: z.string(), returnTo: ReturnTo });
type Flow = z.infer<typeof Flow>;

const providerOf = ({ identityProvider }: RouteDeps): IdentityProvider => {
  if (identityProvider) return identityProvider;
  throw new HeraldError(
    "route-not-found",
    "sign-in: HERALD_GATEWAY_OIDC_ISSUER is not set, so there is no identity provider",
  );
};

const expired = (why: string) => new HeraldError("sign-in-expired", `sign-in: ${why}; begin again at /console/`);

const isSame = (one: string, other: string): boolean =>
  timingSafeEqual(hash("sha256", one, "buffer"), hash("sha256", other, "buffer"));

/** The sign-in that this browser has begun. */
const flowOf = ({ headers }: IncomingMessage, secure: boolean, state: string | undefined): Flow => {
  const sent = cookieOf(headers.cookie, signInCookieName(secure));
  if (sent === undefined) throw expired("this browser has begun none in the last 10 minutes");
  let flow: ReturnType<typeof Flow.safeParse>;
  try {
    flow = Flow.safeParse(JSON.parse(Buffer.from(sent, "base64url").toString()));
  } catch {
    throw expired("its cookie cannot be read");
  }
  if (!flow.success || state === undefined || !isSame(flow.data.state, state))
    throw expired("another browser or tab has begun it");
  return flow.data;
};

const flowCookie = (value: string, secure: boolean, expires: Date): string =>
  // The provider's page leads here from another site, so the cookie must be `Lax`.
  cookie({ name: signInCookieName(secure), value, secure, expires, sameSite: "Lax" });

/** Shows a person the console with the reason. Other clients get the error itself. */
const toConsole = (error: unknown, { headers }: IncomingMessage, clear?: string) => {
  const isKnown = hasCode(
    error,
    "sign-in-expired",
    "identity-token-invalid",
    "sign-in-not-permitted",
    "identity-provider-unavailable",
  );
  if (!isKnown || !headers.accept?.includes("text/html")) throw error;
  const location = `${home}#sign-in=${error.code}`;
  return { status: 303 as const, body: undefined, headers: { location, ...(clear && { "set-cookie": clear }) } };
};

const getSignInWays = defineRoute("getSignInWays", "get /admin/v1/sign-in", {
  summary: "Read how people can sign in",
  access: noCredential,
  responses: { 200: { description: "The ways beside a token", schema: dataOf(SignInWays) } },
  handle: async ({ identityProvider }) => ok({ oidc: identityProvider !== undefined }),
});

const beginSignIn = defineRoute("beginSignIn", "get /admin/v1/sign-in/oidc", {
  summary: "Begin a sign-in by the identity provider",
  description:
    "For browsers: leads to the provider, which leads back to the callback. The sign-in must end within 10 minutes in the same browser.",
  access: noCredential,
  query: SignInQuery,
  responses: {
    302: { description: "To the identity provider" },
    303: { description: "For browsers: to the console, with the slug of the error after `#sign-in=`" },
  },
  errors: ["route-not-found", "identity-provider-unavailable"],
  handle: async (deps, { query, message, secure }) => {
    const provider = providerOf(deps);
    try {
      const { address, flow } = await provider.begin();
      const value = JSON.stringify({ ...flow, returnTo: query.return_to ?? home } satisfies Flow);
      const expires = new Date(deps.now().getTime() + flowMs);
      const setCookie = flowCookie(Buffer.from(value).toString("base64url"), secure, expires);
      return { status: 302 as const, body: undefined, headers: { location: address, "set-cookie": setCookie } };
    } catch (error) {
      return toConsole(error, message);
    }
  },
});

/** Signs the person in whom the provider names. Resolves to the cookie of the session. */
const signIn = async (
  deps: RouteDeps,
  query: string,
  flow: Flow,
  address: string,
  secure: boolean,
): Promise<string> => {
  const { groupsFile, sendRequest, operators, sessions, limits, audit, signInSessionMs } = deps;
  const provider = providerOf(deps);
  const record = (operator: Parameters<typeof audit>[0]["operator"], after: Record<string, unknown>) =>
    audit({ operator, action: "finishSignIn", target: callbackPath, address, after });
  let hasToken = false;
  let name = "unknown";
  try {
    const person = await provider.finish(query, flow, () => {
      hasToken = true;
    });
    name = person.name;
    const groups = groupsFile.known(person.groups);
    const everyone = !groupsFile.exists;
    const asked = { issuer: provider.issuer, ...person, groups, everyone };
    const { id } = await sendRequest(SignInOperator, asked);
    const operator = await operators.findByHash(identityHash(provider.issuer, person.subject), address);
    if (operator === undefined) throw invalidCredential("sign-in: the operator was deleted meanwhile; sign in again");
    await limits.countSignIn(id as typeof operator.id);
    const { role } = operator;
    await record({ id: operator.id, name: operator.name, role }, { status: "signed-in" });
    const logoutUrl = await provider.logoutUrl();
    const { secret, expiresAt } = await sessions.start(operator, { ms: signInSessionMs, logoutUrl });
    return cookie({ name: sessionCookieName(secure), value: secret, secure, expires: expiresAt });
  } catch (error) {
    // Only what the provider has answered gets a row: anyone can send anything else.
    if (hasToken && hasCode(error, "identity-token-invalid", "sign-in-not-permitted"))
      await record({ id: "unknown", name, role: "member" }, { status: error.code });
    throw error;
  }
};

const finishSignIn = defineRoute("finishSignIn", `get ${callbackPath}`, {
  summary: "Finish a sign-in by the identity provider",
  description:
    "The provider leads the browser here. The person becomes the operator of the issuer and the subject, never of an email; the first sign-in creates it. The session's cookie is that of `POST /admin/v1/sessions`, for as long as `HERALD_GATEWAY_OIDC_SESSION` says.",
  access: noCredential,
  query: z.looseObject({
    code: z.string().optional().meta({ description: "The provider's code; absent when it refused" }),
    state: z.string().optional().meta({ description: "That of the sign-in which this browser has begun" }),
  }),
  responses: {
    303: {
      description:
        "Signed in: to the page that began; otherwise, for browsers, to the console with the slug of the error",
    },
  },
  errors: [
    "route-not-found",
    "sign-in-expired",
    "unauthenticated",
    "identity-token-invalid",
    "sign-in-not-permitted",
    "identity-provider-unavailable",
  ],
  handle: async (deps, { query, message, address, secure }) => {
    providerOf(deps);
    const clear = flowCookie("", secure, new Date(0));
    try {
      const flow = flowOf(message, secure, query.state);
      const session = await signIn(deps, message.url?.split("?", 2)[1] ?? "", flow, address, secure);
      const headers = { location: flow.returnTo, "set-cookie": [session, clear] };
      return { status: 303 as const, body: undefined, headers };
    } catch (error) {
      await deps.limits.countFailure(address);
      return toConsole(error, message, clear);
    }
  },
});

export const signInRoutes = [getSignInWays, beginSignIn, finishSignIn];
