import { hash, timingSafeEqual } from "node:crypto";
import { type OperatorRole, ProjectId, roleIncludes } from "@herald/contracts";
import { HeraldError, notFound } from "@herald/kit";
import {
  type Access,
  type ActingOperator,
  type Caller,
  forbidden,
  type OperatorSession,
  roleIn,
  roleOf,
  scopesOf,
} from "./caller.ts";
import type { ProjectDirectory } from "./directories.ts";
import type { RequestCredentials } from "./request-credentials.ts";

const digest = (text: string): Buffer => hash("sha256", text, "buffer");

/** A page of another origin must not use the cookie, and cannot read the CSRF token. */
export const checkSessionUse = ({ csrfToken }: OperatorSession, sent: RequestCredentials): void => {
  if (sent.fromOtherOrigin)
    throw new HeraldError("forbidden", "cookie: pages of another origin may not use the session");
  if (!sent.changes) return;
  if (sent.csrfToken === undefined || !timingSafeEqual(digest(sent.csrfToken), digest(csrfToken)))
    throw new HeraldError(
      "csrf-token-invalid",
      "Herald-Csrf: send the `csrf_token` of GET /admin/v1/sessions/current with every change",
    );
};

/**
 * Decides alone what operators may do: under `/admin/v1` by the role for the installation or for the project that the request is about,
 * under `/api/v1` by the role in the project that the request names. To a member, other projects do not exist.
 * Throws forbidden, project-not-found or validation-failed.
 */
export const permitOperator =
  (projects: Pick<ProjectDirectory, "settings">) =>
  async (
    who: { readonly operator: ActingOperator; readonly session?: OperatorSession },
    access: Access,
    sent: RequestCredentials,
  ): Promise<Caller> => {
    const { operator } = who;
    if (sent.withoutOperators) throw forbidden("operators use the admin port");
    const needed = roleOf(access);
    if (needed === undefined) throw forbidden("operators cannot do this");
    if (access.by.includes("operator")) {
      checkRole(operator, needed, access.grant, sent.target);
      return { kind: "operator", ...who };
    }
    if (sent.project === undefined) throw forbidden("an operator names the project in the header `Herald-Project`");
    const projectId = ProjectId.safeParse(sent.project);
    if (!projectId.success) throw new HeraldError("validation-failed", "Herald-Project: must be a project id, prj_…");
    checkRole(operator, needed, needed, projectId.data);
    await projects.settings(projectId.data);
    return {
      kind: "project",
      projectId: projectId.data,
      tokenId: operator.id,
      scopes: scopesOf(roleIn(operator, projectId.data)),
      operator,
    };
  };

const mayApprove = ({ projects }: ActingOperator, project: string | undefined): boolean =>
  projects.some(({ id, approve }) => id === project && approve);

/** Checks for the role `needed` for the installation, or `inProject` for the project. */
const checkRole = (
  operator: ActingOperator,
  needed: OperatorRole,
  inProject: OperatorRole | "approve" | undefined,
  project: string | undefined,
): void => {
  const { name, role } = operator;
  if (roleIncludes(role, needed)) return;
  const own = roleIn(operator, project);
  if (project !== undefined && own === "member") throw notFound("project-not-found", "project");
  const suffices =
    inProject === "approve" ? mayApprove(operator, project) : inProject !== undefined && roleIncludes(own, inProject);
  if (project !== undefined && suffices) return;
  const ofGrant = inProject === "approve" ? ", and no grant here with `approve`" : "";
  const there = own === role ? ofGrant : `, and \`${own}\` in this project${ofGrant}`;
  throw forbidden(`this needs the role \`${needed}\`; the operator ${name} has \`${role}\`${there}`);
};
