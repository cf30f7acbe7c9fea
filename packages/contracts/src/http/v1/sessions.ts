import { z } from "zod";
import { OperatorId } from "../../ids.ts";
import { named, namedBody } from "../../named.ts";
import { OperatorRole, ProjectGrant } from "./operators.ts";

/** The lifetime of a session: a working day. */
export const sessionMs = 8 * 3_600_000;
/** An operator's sessions at a time: a person uses a few browsers, and sessions must not fill their bucket. */
export const maxSessions = 20;
/** The lifetime of a sign-in code: enough to click a link. */
export const signInCodeMs = 600_000;

/**
 * The name of a session's cookie. Over https it has the prefix with which browsers take it only from this host itself, and only
 * encrypted: no other host of the domain can plant one.
 */
export const sessionCookieName = (secure: boolean): string => (secure ? "__Host-herald_session" : "herald_session");
/** The cookie of a sign-in that an identity provider is about to answer. */
export const signInCookieName = (secure: boolean): string => (secure ? "__Host-herald_sign_in" : "herald_sign_in");
/** The headers of operators' requests. */
export const operatorHeaders = { csrf: "Herald-Csrf", project: "Herald-Project" } as const;

const rootMeta = "`root`: the holder of HERALD_ADMIN_TOKEN";

/** An operator, or `root`: the holder of HERALD_ADMIN_TOKEN. */
export const OperatorReference = z
  .union([OperatorId, z.literal("root")])
  .meta({ description: rootMeta, examples: ["opr_06bq4ghm31tz5d2ns8y7k9w0ac"] });
export type OperatorReference = z.infer<typeof OperatorReference>;

const operatorFields = {
  id: OperatorReference,
  name: z.string().meta({ examples: ["Maria Lopez"] }),
  role: OperatorRole,
};

/** Who did what an audit row says. */
export const AuditedReference = z.union([OperatorReference, z.literal("unknown"), z.literal("herald")]).meta({
  description: `${rootMeta}; \`unknown\`: someone whose sign-in was refused; \`herald\`: Herald itself`,
  examples: ["opr_06bq4ghm31tz5d2ns8y7k9w0ac"],
});
export type AuditedReference = z.infer<typeof AuditedReference>;

/** The operator of an audit row. */
export const AuditedOperator = named("AuditedOperator", { ...operatorFields, id: AuditedReference });

export const SignedInOperator = named("SignedInOperator", { ...operatorFields, projects: z.array(ProjectGrant) });

const CsrfToken = z.string().meta({
  description: "Send it as `Herald-Csrf` with every change that uses the session cookie",
  examples: ["mJ2xWl8m1VnLw9mZl1kq0t7Y2b3c4d5e6f7g8h9i0jk"],
});

/** A new session. Only the cookie contains its secret, or `token` if the request asked for a bearer. */
export const Session = named("Session", {
  operator: SignedInOperator,
  csrf_token: CsrfToken.optional(),
  expires_at: z.iso.datetime(),
});

/** The calling operator. With an operator token instead of a session there are no CSRF token and no expiry. */
export const CurrentSession = Session.partial({ expires_at: true }).meta({ id: "CurrentSession" });

/** Body of `POST /admin/v1/sessions`: empty with an operator's token, otherwise a sign-in code. */
export const CreateSession = namedBody("CreateSession", {
  code: z
    .string()
    .max(100, "must be a sign-in code, hoc_…")
    .optional()
    .meta({ description: "A sign-in code, `hoc_…`, when no Authorization is sent", examples: ["hoc_…"] }),
  bearer: z
    .literal(true)
    .optional()
    .meta({ description: "Answers the session as `token`, for programs, instead of a cookie. It needs no CSRF token" }),
});

/** A one-time code that signs in as the operator who created it. */
export const SignInCode = named("SignInCode", {
  code: z.string().meta({ examples: ["hoc_…"] }),
  expires_at: z.iso.datetime(),
});

/** Whether people can sign in by an identity provider. */
export const SignInWays = named("SignInWays", {
  oidc: z.boolean().meta({ description: "`GET /admin/v1/sign-in/oidc` begins a sign-in" }),
});

const returnPath = /^\/console(?:\/(?!\.)[A-Za-z0-9._~-]+)*\/?$/;

/** Only pages of the console: any other address could lead a person who has just signed in to a stranger's page. */
export const ReturnTo = z
  .string()
  .max(500, "must be at most 500 characters")
  .regex(returnPath, "must be a path of the console, such as /console/");

/** The query of `GET /admin/v1/sign-in/oidc`. */
export const SignInQuery = z.strictObject({
  return_to: ReturnTo.optional().meta({ description: "The page to show afterwards", examples: ["/console/"] }),
});

/** The answer to signing out of a session that an identity provider began. */
export const SignedOut = named("SignedOut", {
  logout_url: z.string().meta({
    description: "Ends the session at the identity provider too: open it in the browser",
    examples: ["https://id.example.com/logout?client_id=herald"],
  }),
});
