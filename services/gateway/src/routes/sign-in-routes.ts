import { hash, timingSafeEqual } from "node:crypto";
import type { IncomingMessage } from "node:http";
import {
  identityHash,
  operatorRequests,
  ReturnTo,
  SignInQuery,
  SignInWays,
  sessionCookieName,
  signInCookieName,
} from "@herald/contracts";
import { HeraldError, hasCode } from "@herald/kit";
import { z } from "zod";
import { invalidCredential, noCredential } from "../auth/caller.ts";
import { cookieOf } from "../auth/request-credentials.ts";
import type { RequestDeps, RouteDeps } from "../deps.ts";
import { cookie, ok } from "../http/reply.ts";
import { dataOf, defineRoute } from "../http/route.ts";
import type { IdentityProvider } from "../sign-in/identity-provider.ts";
import { signInFailureName } from "../sign-in/sign-in-failure.ts";

/** Long enough for a second factor; a code of the provider lives shorter. */
const flowMs = 600_000;
const callbackPath = "/admin/v1/sign-in/callback";
const home = "/console/";

const Flow = z.object({
  state: z.string(),
  nonce: z.string(),
  verifier: z.string(),
  returnTo: ReturnTo,
  /** When it ends, in ms. */
  until: z.number(),
});
type Flow = z.infer<typeof Flow>;

/** What the cookie has after a refusal: the next sign-in of this browser lets the person choose another account. */
const Refused = z.object({ refused: z.literal(true), until: z.number() });

const providerOf = ({ identityProvider }: Pick<RouteDeps, "identityProvider">): IdentityProvider => {
  if (identityProvider) return identityProvider;
  throw new HeraldError(
    "route-not-found",
    "sign-in: HERALD_GATEWAY_OIDC_ISSUER is not set, so there is no identity provider",
  );
};

const expired = (why: string) => new HeraldError("sign-in-expired", `sign-in: ${why}; begin again at /console/`);

const isSame = (one: string, other: string): boolean =>
  timingSafeEqual(hash("sha256", one, "buffer"), hash("sha256", other, "buffer"));

type FlowDeps = Pick<RouteDeps, "now" | "signInFlows">;

/** The sign-in that this browser has begun. Only Herald can have sealed it, so no one else's reaches the provider. */
const flowOf = (
  { signInFlows, now }: FlowDeps,
  { headers }: IncomingMessage,
  secure: boolean,
  state: string | undefined,
): Flow => {
  const sent = cookieOf(headers.cookie, signInCookieName(secure));
  if (sent === undefined) throw expired("this browser has begun none in the last 10 minutes");
  const opened = signInFlows.open(sent);
  if (opened === undefined) throw expired("its cookie cannot be read");
  const { data: flow } = Flow.safeParse(JSON.parse(opened.toString()));
  if (flow === undefined || flow.until <= now().getTime())
    throw expired("this browser has begun none in the last 10 minutes");
  if (state === undefined || !isSame(flow.state, state)) throw expired("another browser or tab has begun it");
  return flow;
};

const wasRefused = ({ signInFlows, now }: FlowDeps, { headers }: IncomingMessage, secure: boolean): boolean => {
  const opened = signInFlows.open(cookieOf(headers.cookie, signInCookieName(secure)) ?? "");
  const { data } = Refused.safeParse(opened && JSON.parse(opened.toString()));
  return data !== undefined && data.until > now().getTime();
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
    "identity-provider-refused",
  );
  if (!isKnown || !headers.accept?.includes("text/html")) throw error;
  const location = `${home}#sign-in=${signInFailureName(error)}`;
  return { status: 303 as const, body: undefined, headers: { location, ...(clear && { "set-cookie": clear }) } };
};

type SignInDeps = RequestDeps &
  Pick<
    RouteDeps,
    "audit" | "groupsFile" | "identityProvider" | "limits" | "operators" | "sessions" | "signInSessionMs"
  >;

/** Signs the person in whom the provider names. Resolves to the cookie of the session. */
const signIn = async (
  deps: SignInDeps,
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
    const identity = identityHash(provider.issuer, person.subject);
    await limits.countSignIn(identity);
    const { subject, email } = person;
    await sendRequest(operatorRequests.signIn, { issuer: provider.issuer, subject, name, email, groups, everyone });
    const operator = await operators.findByHash(identity, address);
    if (operator === undefined) throw invalidCredential("sign-in: the operator was deleted meanwhile; sign in again");
    const { role } = operator;
    await record({ id: operator.id, name: operator.name, role }, { status: "signed-in" });
    const logoutUrl = await provider.logoutUrl(person.loginHint);
    const { secret, expiresAt } = await sessions.start(operator, { ms: signInSessionMs, logoutUrl });
    return cookie({ name: sessionCookieName(secure), value: secret, secure, expires: expiresAt });
  } catch (error) {
    // Only what the provider has answered gets a row: anyone can send anything else.
    if (hasToken && hasCode(error, "identity-token-invalid", "sign-in-not-permitted"))
      await record({ id: "unknown", name, role: "member" }, { status: error.code });
    throw error;
  }
};

export const signInRoutes = [
  defineRoute("getSignInWays", "get /admin/v1/sign-in", {
    summary: "List the ways to sign in",
    access: noCredential,
    responses: { 200: { description: "The ways other than a token", schema: dataOf(SignInWays) } },
    handle: async ({ identityProvider }) => ok({ oidc: identityProvider !== undefined }),
  }),
  defineRoute("beginSignIn", "get /admin/v1/sign-in/oidc", {
    summary: "Begin a sign-in by the identity provider",
    description:
      "For browsers: leads to the provider, which leads back to the callback. The sign-in must end within 10 minutes in the same browser. After a refused person, the provider is asked to offer a choice of accounts.",
    access: noCredential,
    query: SignInQuery,
    responses: {
      302: { description: "To the identity provider" },
      303: {
        description:
          "For browsers: to the console, with the slug of the error, and its reason if there is one, after `#sign-in=`: `identity-provider-refused.client`",
      },
    },
    errors: ["route-not-found", "identity-provider-unavailable"],
    handle: async (deps, { query, message, secure }) => {
      const provider = providerOf(deps);
      try {
        const { address, flow } = await provider.begin(wasRefused(deps, message, secure));
        const until = deps.now().getTime() + flowMs;
        const value = JSON.stringify({ ...flow, returnTo: query.return_to ?? home, until } satisfies Flow);
        const setCookie = flowCookie(deps.signInFlows.seal(Buffer.from(value)), secure, new Date(until));
        return { status: 302 as const, body: undefined, headers: { location: address, "set-cookie": setCookie } };
      } catch (error) {
        return toConsole(error, message);
      }
    },
  }),
  defineRoute("finishSignIn", `get ${callbackPath}`, {
    summary: "Finish a sign-in by the identity provider",
    description:
      "The provider leads the browser here. Issuer and subject identify the operator, never an email; the first sign-in creates it. The session's cookie is that of `POST /admin/v1/sessions`, for as long as `HERALD_GATEWAY_OIDC_SESSION` says.",
    access: noCredential,
    query: z.looseObject({
      code: z.string().optional().meta({ description: "The provider's code; absent when it refused" }),
      state: z.string().optional().meta({ description: "The state of the sign-in that this browser began" }),
    }),
    responses: {
      303: {
        description:
          "Signed in: to the page that began; otherwise, for browsers, to the console with the slug of the error and its reason",
      },
    },
    errors: [
      "route-not-found",
      "sign-in-expired",
      "unauthenticated",
      "identity-token-invalid",
      "sign-in-not-permitted",
      "identity-provider-unavailable",
      "identity-provider-refused",
    ],
    handle: async (deps, { query, message, address, secure }) => {
      providerOf(deps);
      const clear = flowCookie("", secure, new Date(0));
      try {
        const flow = flowOf(deps, message, secure, query.state);
        // Counted before the provider is asked, whose answer takes a while.
        const session = await deps.limits.countWhileVerifying(address, () =>
          signIn(deps, message.url?.split("?", 2)[1] ?? "", flow, address, secure),
        );
        const headers = { location: flow.returnTo, "set-cookie": [session, clear] };
        return { status: 303 as const, body: undefined, headers };
      } catch (error) {
        await deps.limits.countFailure(address);
        if (!hasCode(error, "sign-in-not-permitted")) return toConsole(error, message, clear);
        const until = deps.now().getTime() + flowMs;
        const refused = Buffer.from(JSON.stringify({ refused: true, until } satisfies z.infer<typeof Refused>));
        return toConsole(error, message, flowCookie(deps.signInFlows.seal(refused), secure, new Date(until)));
      }
    },
  }),
];
