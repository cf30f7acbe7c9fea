import {
  CreateSession,
  CurrentSession,
  Session,
  SignedOut,
  SignInCode,
  sessionCookieName,
  sessionMs,
} from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import { type ActingOperator, anyOperator, createCode, invalidCredential, signInAccess } from "../auth/caller.ts";
import type { RouteDeps } from "../deps.ts";
import { cookie, created, noContent, ok } from "../http/reply.ts";
import { dataOf, defineRoute, shownOnce } from "../http/route.ts";

const audited = ({ id, name, role }: ActingOperator) => ({ id, name, role });
const signedIn = (operator: ActingOperator) => ({ ...audited(operator), projects: [...operator.projects] });

const operatorOfCode = async (
  { operators, sessions }: Pick<RouteDeps, "operators" | "sessions">,
  code: string,
  address: string,
): Promise<{ readonly operator: ActingOperator; readonly until: Date | undefined }> => {
  const { operatorTokenHash, signedOutAt, sessionEndsAt } = await sessions.redeemCode(code, address);
  const operator = await operators.findByHash(operatorTokenHash, address);
  if (operator === undefined) throw invalidCredential("code: the operator who created it no longer exists");
  if (operator.signedOutAt !== signedOutAt) throw invalidCredential("code: its operator was signed out since");
  return { operator, until: sessionEndsAt === undefined ? undefined : new Date(sessionEndsAt) };
};

const sessionCookie = (value: string, secure: boolean, expires: Date): string =>
  cookie({ name: sessionCookieName(secure), value, secure, expires });

export const sessionRoutes = [
  defineRoute("createSession", "post /admin/v1/sessions", {
    summary: "Sign an operator in",
    description:
      "Exchanges an operator's token (`Authorization`) or a sign-in code (`code`, without `Authorization`) for a session of 8 hours. The session is a cookie, `HttpOnly` and `SameSite=Strict`; `Secure` and named `__Host-herald_session` when the request came by https, otherwise `herald_session`. An operator has at most 20 sessions: another one ends the oldest. Every change that uses it needs the header `Herald-Csrf` with `csrf_token`. With the header `Herald-Project` the session may call `/api/v1` for that project, within the operator's role. A session ends when the operator is deleted or its token is replaced, and follows the operator's role. A code, and a session that it signs in, expires with its session. With `bearer` the answer contains the session as `token`, `hss_…`, for `Authorization: Bearer`; it sets no cookie and needs no CSRF token.",
    access: signInAccess,
    body: CreateSession,
    responses: {
      201: {
        description: "The session, whose secret is in `Set-Cookie` or in `token`",
        schema: dataOf(Session).extend({ token: shownOnce("The bearer; only if the request asked for it") }),
      },
    },
    handle: async ({ operators, sessions, limits, audit }, { caller, body: { code, bearer }, address, secure }) => {
      const byCode = caller.kind === "client";
      if (byCode && code === undefined)
        throw new HeraldError("validation-failed", "code: is required without an Authorization header");
      if (!byCode && code !== undefined)
        throw new HeraldError("validation-failed", "code: send it without an Authorization header");
      const { operator, until } = byCode
        ? await operatorOfCode({ operators, sessions }, code ?? "", address)
        : { operator: caller.operator, until: caller.session?.expiresAt };
      // The code is in the body, so this request was not counted before its handler, and has no audit row yet.
      if (byCode) {
        await limits.countSignIn(operator.id);
        await audit({ operator: audited(operator), action: "createSession", target: "/admin/v1/sessions", address });
      }
      const { secret, csrfToken, expiresAt } = await sessions.start(operator, { ms: sessionMs, until, bearer });
      const data = { operator: signedIn(operator), expires_at: expiresAt.toISOString() };
      if (bearer) return created(data, { token: secret });
      const headers = { "set-cookie": sessionCookie(secret, secure, expiresAt) };
      return { ...created({ ...data, csrf_token: csrfToken }), headers };
    },
  }),
  defineRoute("getCurrentSession", "get /admin/v1/sessions/current", {
    summary: "Read who is signed in",
    description:
      "The operator with its current role. `csrf_token` and `expires_at` are absent when the request has an operator's token instead of a session.",
    access: anyOperator,
    responses: { 200: { description: "The operator", schema: dataOf(CurrentSession) } },
    handle: async (_deps, { caller: { operator, session } }) =>
      ok({
        operator: signedIn(operator),
        ...(session && {
          ...(session.bearer ? {} : { csrf_token: session.csrfToken }),
          expires_at: session.expiresAt.toISOString(),
        }),
      }),
  }),
  defineRoute("deleteCurrentSession", "delete /admin/v1/sessions/current", {
    summary: "Sign out",
    description: "All gateways refuse the session within a second.",
    access: anyOperator,
    responses: {
      200: { description: "The session has ended; the identity provider's may go on", schema: dataOf(SignedOut) },
      204: { description: "The session has ended" },
    },
    errors: ["session-not-found"],
    handle: async ({ sessions }, { caller: { session }, secure }) => {
      if (session === undefined)
        throw new HeraldError("session-not-found", "session: the request has an operator's token and no session");
      await sessions.end(session);
      const headers = { "set-cookie": sessionCookie("", secure, new Date(0)) };
      const { logoutUrl } = session;
      return logoutUrl === undefined ? { ...noContent(), headers } : { ...ok({ logout_url: logoutUrl }), headers };
    },
  }),
  defineRoute("createSignInCode", "post /admin/v1/sessions/codes", {
    summary: "Create a sign-in code",
    description:
      "The code signs in once, within 10 minutes, as the operator who created it. It may stand in a link's fragment, `/console#code=…`; a token may not.",
    access: createCode,
    responses: { 201: { description: "The code", schema: dataOf(SignInCode) } },
    handle: async ({ sessions }, { caller: { operator, session } }) => {
      const { code, expiresAt } = await sessions.createCode(operator, session?.expiresAt);
      return created({ code, expires_at: expiresAt.toISOString() });
    },
  }),
];
