import { hash, timingSafeEqual } from "node:crypto";
import { ProjectId, roleIncludes } from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import type { RateLimits } from "../limits/rate-limits.ts";
import type { OperatorDirectory } from "../records/operator-directory.ts";
import type { ProjectDirectory } from "../records/project-directory.ts";
import type { Sessions } from "../sessions/sessions.ts";
import { type Access, type ActingOperator, type Caller, type OperatorSession, roleOf, scopesOf } from "./caller.ts";
import type { Credentials } from "./credentials.ts";

export type OperatorDeps = {
  readonly operators: OperatorDirectory;
  readonly sessions: Sessions;
  readonly projects: Pick<ProjectDirectory, "settings">;
  readonly limits: RateLimits;
};

const forbidden = (message: string): HeraldError => new HeraldError("forbidden", message);

const digest = (text: string): Buffer => hash("sha256", text, "buffer");

const ended = (): HeraldError =>
  new HeraldError("unauthenticated", "cookie: the session has ended; sign in again", {
    headers: { "www-authenticate": 'Bearer realm="herald", error="invalid_token"' },
  });

/** A page of another origin must not use the cookie, and cannot read the CSRF token. */
const checkSessionUse = ({ csrfToken }: OperatorSession, sent: Credentials): void => {
  if (sent.fromOtherOrigin) throw forbidden("cookie: pages of another origin may not use the session");
  if (!sent.changes) return;
  if (sent.csrfToken === undefined || !timingSafeEqual(digest(sent.csrfToken), digest(csrfToken)))
    throw new HeraldError(
      "csrf-token-invalid",
      "Herald-Csrf: send the `csrf_token` of GET /admin/v1/sessions/current with every change",
    );
};

/** Operators: by token or session, under `/admin/v1` by their role, under `/api/v1` for the project that they name. */
export const createAuthenticateOperator = ({ operators, sessions, projects, limits }: OperatorDeps) => {
  /** What an operator may do with a route. Throws forbidden, project-not-found or validation-failed. */
  const permit = async (
    who: { readonly operator: ActingOperator; readonly session?: OperatorSession },
    access: Access,
    sent: Credentials,
  ): Promise<Caller> => {
    const { operator } = who;
    if (sent.withoutOperators) throw forbidden("authorization: operators use the admin port");
    const needed = roleOf(access);
    if (needed === undefined) throw forbidden("authorization: operators cannot do this");
    const isProjectRoute = !access.by.includes("operator");
    if (isProjectRoute && sent.project === undefined)
      throw forbidden("authorization: an operator names the project in the header `Herald-Project`");
    if (!roleIncludes(operator.role, needed))
      throw forbidden(
        `authorization: this needs the role \`${needed}\`; the operator ${operator.name} has \`${operator.role}\``,
      );
    if (!isProjectRoute) return { kind: "operator", ...who };
    const projectId = ProjectId.safeParse(sent.project);
    if (!projectId.success) throw new HeraldError("validation-failed", "Herald-Project: must be a project id, prj_…");
    await projects.settings(projectId.data);
    return {
      kind: "project",
      projectId: projectId.data,
      tokenId: operator.id,
      scopes: scopesOf(operator.role),
      operator,
    };
  };

  return {
    /** The operator of a session cookie. Throws unauthenticated, forbidden, csrf-token-invalid or rate-limited. */
    bySession: async (secret: string, access: Access, sent: Credentials, address: string): Promise<Caller> => {
      const session = await sessions.find(secret, address);
      const operator = session && operators.findByHash(session.operatorTokenHash);
      if (session === undefined || operator === undefined) {
        await limits.countFailure(address);
        throw ended();
      }
      checkSessionUse(session, sent);
      return permit({ operator, session }, access, sent);
    },

    /** The operator of a token; undefined when it is no operator's. */
    byToken: async (token: string, access: Access, sent: Credentials, address: string): Promise<Caller | undefined> => {
      const operator = await operators.find(token, address);
      return operator && permit({ operator }, access, sent);
    },
  };
};
