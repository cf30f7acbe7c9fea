import {
  newOperatorId,
  newProjectId,
  type OperatorRole,
  type ProjectGrant,
  ProjectRole,
  secretHash,
} from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import { expect, test } from "vitest";
import type { Route } from "../http/route.ts";
import { allRoutes } from "../routes/all-routes.ts";
import { createAuthenticate } from "./authenticate.ts";
import type { ActingOperator } from "./caller.ts";

/** What a route needs by its method and path: a role for the installation, and a role that suffices in its project. */
type Need = { readonly role: OperatorRole; readonly grant?: ProjectRole };

const everywhere = (role: ProjectRole): Need => ({ role, grant: role });

/** Routes under `/admin/v1` that do not follow the rule of {@link neededFor}. */
const exceptions: Readonly<Record<string, Need>> = {
  createSession: { role: "member" },
  createSignInCode: { role: "member" },
  getCurrentSession: { role: "member" },
  deleteCurrentSession: { role: "member" },
  listProjects: { role: "member" },
  listAudit: { role: "viewer", grant: "admin" },
  exportAudit: { role: "viewer", grant: "admin" },
  replayDeadLetter: { role: "operator" },
  replayDeadLetters: { role: "operator" },
  testApnsProvider: everywhere("operator"),
  testFcmProvider: everywhere("operator"),
  testWebPushProvider: everywhere("operator"),
  pauseProject: everywhere("operator"),
  resumeProject: everywhere("operator"),
  approveNotification: { role: "admin" },
  rejectNotification: { role: "admin" },
  deleteProject: { role: "admin" },
  setProjectKey: { role: "admin" },
  changeProjectLimits: { role: "admin" },
};

/** Routes under `/api/v1` whose body, not a credential, says who the caller is. */
const forApps = ["identify", "openNotification", "notificationReceived", "notificationDismissed", "getWebPushKey"];
/** Routes that sign people in, so they have no credential yet. */
const withoutCredential = ["getSignInWays", "beginSignIn", "finishSignIn"];

const ofScope = {
  read: "viewer",
  send: "operator",
  devices: "operator",
  templates: "operator",
  export: "admin",
} as const;

/** Undefined: not for operators. Reads need `viewer`, changes `admin`; `/api/v1` goes by the scopes of a project token. */
const neededFor = ({ operationId, method, path, access }: Route): Need | undefined => {
  if (path.startsWith("/api/")) {
    if (forApps.includes(operationId)) return undefined;
    const roles = (access.scopes ?? []).map((scope) => ofScope[scope]);
    return everywhere((["admin", "operator", "viewer"] as const).find((role) => roles.includes(role)) ?? "admin");
  }
  if (withoutCredential.includes(operationId)) return undefined;
  if (exceptions[operationId]) return exceptions[operationId];
  const role = method === "get" ? "viewer" : "admin";
  return path.startsWith("/admin/v1/projects/{id}") ? everywhere(role) : { role };
};

const now = new Date("2030-01-31T09:00:00.000Z");
const [projectId, elsewhere] = [newProjectId(now), newProjectId(now)];
const operatorId = newOperatorId(now);
const credential = "hop_";
const rank = { member: 0, viewer: 1, operator: 2, admin: 3 };

/** Whether a route permits an operator, and the error code if it does not. */
const outcome = async (route: Route, operator: ActingOperator): Promise<string> => {
  const unused = (): never => {
    throw new Error("only operators call here");
  };
  const authenticate = createAuthenticate({
    operators: { find: async () => operator, findByHash: unused },
    tokens: { find: async () => undefined },
    projects: { settings: async (id: string) => ({ id, openRegistration: true }) },
    limits: { countFailure: async () => {} },
    sessions: {},
    sendRequest: unused,
  } as unknown as Parameters<typeof createAuthenticate>[0]);
  const isAdmin = route.path.startsWith("/admin/");
  const sent = { authorization: `Bearer ${credential}`, ...(isAdmin ? { target: projectId } : { project: projectId }) };
  try {
    const caller = await authenticate(route.access, sent, "203.0.113.7");
    return caller.kind === "client" ? "not for operators" : "permitted";
  } catch (error) {
    if (!(error instanceof HeraldError)) throw error;
    return error.code;
  }
};

test("every route permits exactly the roles and grants that its path and method say", async () => {
  const wrong: string[] = [];
  let tried = 0;
  for (const route of allRoutes)
    for (const role of ["member", "viewer", "operator", "admin"] as const)
      for (const grant of [undefined, "elsewhere", ...ProjectRole.options] as const) {
        const projects =
          grant === undefined
            ? []
            : [
                { id: elsewhere, role: "admin" as const },
                ...(grant === "elsewhere" ? [] : [{ id: projectId, role: grant }]),
              ];
        const operator = { id: operatorId, name: "Maria", role, projects, tokenHash: secretHash("x") } as const;
        const need = neededFor(route);
        const here = grant === undefined || grant === "elsewhere" ? 0 : rank[grant];
        const permitted =
          need !== undefined &&
          (rank[role] >= rank[need.role] ||
            (need.grant !== undefined && Math.max(rank[role], here) >= rank[need.grant]));
        const refused = Math.max(rank[role], here) === 0 ? "project-not-found" : "forbidden";
        const expected = need === undefined ? "not for operators" : permitted ? "permitted" : refused;
        const found = await outcome(route, operator);
        tried++;
        if (found !== expected) wrong.push(`${route.operationId} ${role} ${grant}: ${found} instead of ${expected}`);
      }
  expect(wrong).toEqual([]);
  expect(tried).toBe(allRoutes.length * 20);
});

test("who has a grant with approval may decide on sends of the project, and of no other", async () => {
  const routes = allRoutes.filter(({ access }) => access.grant === "approve");
  const outcomes = (role: OperatorRole, id: ProjectGrant["id"]) => {
    const projects: ProjectGrant[] = [{ id, role: "viewer", approve: true }];
    const operator = { id: operatorId, name: "Maria", role, projects, tokenHash: secretHash("x") } as const;
    return Promise.all(routes.map((route) => outcome(route, operator)));
  };
  expect(await outcomes("member", projectId)).toEqual(["permitted", "permitted"]);
  expect(await outcomes("operator", elsewhere)).toEqual(["forbidden", "forbidden"]);
});
