import { OperatorRole, type ProjectGrant, ProjectRole, roleIncludes, Scope } from "@herald/contracts";
import type { Request } from "@herald/testing";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { roleOf } from "../src/auth/caller.ts";
import type { Route } from "../src/http/route.ts";
import { allRoutes } from "../src/routes/all-routes.ts";
import { routeOf } from "./documented.ts";
import { adminToken, type GatewayTest, startGatewayTest, type TestProject } from "./gateway-fixture.ts";
import { createWorld, partsOf } from "./new-world.ts";
import type { Case, World, WorldPart } from "./route-case.ts";
import { table } from "./route-table.ts";

let system: GatewayTest;
let stranger: TestProject;
let shared: World;
let other: World;
const operators = new Map<OperatorRole, string>();
beforeAll(async () => {
  system = await startGatewayTest({ environment: { HERALD_GATEWAY_LIMIT_FAILURES: "100000" } });
  const created = await system.project("Stranger");
  stranger = { ...created, token: await system.token(created, Scope.options) };
  [shared, other] = [await createWorld(system), await createWorld(system, ["credential"])];
  for (const role of OperatorRole.options) operators.set(role, await system.operator(role));
});
afterAll(() => system.stop());

const caseOf = (route: Route): Case => {
  const found = table[route.operationId];
  if (found === undefined) throw new Error(`${route.operationId} is not in the table`);
  return found;
};

/** The credential for a route: the admin token or its session, a project token, or none. */
const credentialFor = async (route: Route, { project }: { project: TestProject }): Promise<Request> => {
  if (caseOf(route).session) return { headers: await system.session(adminToken) };
  if (route.access.by.includes("operator")) return { token: adminToken };
  return route.access.by.includes("project") ? { token: project.token } : {};
};

/** The headers with which an operator calls the route for a world's project. */
const operatorHeaders = async (route: Route, token: string, { project }: World) => ({
  ...(caseOf(route).session ? await system.session(token) : { authorization: `Bearer ${token}` }),
  ...(route.access.by.includes("operator") ? {} : { "herald-project": project.id }),
});

/** The path of a route with the project that its grant is about: in the query where the path does not name it. */
const pathOf = (route: Route, world: World): string => {
  const path = caseOf(route).route(world);
  const inQuery = route.access.grant !== undefined && !route.path.includes("/projects/{id}");
  return inQuery ? `${path}?project_id=${world.project.id}` : path;
};

/** Credentials by what they permit: routes that only read need the same ones in the shared world. */
const made = new Map<string, Promise<string>>();
const once = (make: () => Promise<string>, ...key: unknown[]): Promise<string> => {
  const name = JSON.stringify(key);
  const credential = made.get(name) ?? make();
  made.set(name, credential);
  return credential;
};
const memberOf = (grants: readonly ProjectGrant[]) => once(() => system.operator("member", grants), grants);
const tokenOf = ({ project }: World, scopes: Scope[]) => once(() => system.token(project, scopes), project.id, scopes);

const bodyFor = (one: Case, world: World): Request => (one.body === undefined ? {} : { body: one.body(world) });

test("the table has every route, and no other", () => {
  expect(Object.keys(table).sort()).toEqual(allRoutes.map(({ operationId }) => operationId).sort());
});

describe.each(allRoutes.map((route) => [`${route.method.toUpperCase()} ${route.path}`, route] as const))(
  "%s",
  (_, route) => {
    const one = caseOf(route);
    const { by, scopes } = route.access;
    /** Tests that do not apply to a route are omitted instead of skipped. */
    const testIf = (concerns: boolean) => (concerns ? test : () => {});
    /** Routes that only read use the shared world, because they leave it unchanged; others a new one with what they need, and `more`. */
    const worldToUse = async (...more: WorldPart[]): Promise<World> =>
      route.method === "get" ? shared : createWorld(system, [...partsOf(one), ...more]);

    test("answers a valid request with its documented status", async () => {
      const world = await worldToUse();
      const path = one.route(world);
      const [method = "", url = ""] = path.split(" ");
      expect(routeOf(method, url.split("?", 1)[0] ?? "")?.operationId).toBe(route.operationId);
      const answer = await system.call(path, { ...(await credentialFor(route, world)), ...bodyFor(one, world) });
      expect(answer.status, JSON.stringify(answer.body)).toBe(one.status);
    });

    test("refuses an invalid body or query, and names the field", async () => {
      const call = { ...(await credentialFor(route, shared)), ...(one.bad === undefined ? {} : { body: one.bad }) };
      const answer = await system.call(one.route(shared) + (one.badQuery ?? ""), call);
      expect(answer.status, JSON.stringify(answer.body)).toBe(422);
      expect(answer.problem.errors.length).toBeGreaterThan(0);
      for (const message of answer.problem.errors) expect(message).toMatch(/^[A-Za-z_-][\w.$\-[\]]*: ./);
    });

    testIf(route.body !== undefined)("refuses unknown fields beside the known ones", async () => {
      const body = { ...(one.body?.(shared) as object), surplus: 1 };
      const answer = await system.call(one.route(shared), { ...(await credentialFor(route, shared)), body });
      expect(answer.status).toBe(422);
      expect(answer.problem.errors.join()).toContain("surplus");
    });

    testIf(!by.every((kind) => kind === "client"))("needs a valid credential", async () => {
      const path = one.route(shared);
      const foreign = by.includes("operator") ? shared.project.token : adminToken;
      const wrong = ["Bearer nonsense", "Basic YTpi", "Bearer", `Bearer ${shared.project.token}x`, `Bearer ${foreign}`];
      for (const authorization of wrong) {
        const answer = await system.call(path, { headers: { authorization }, ...bodyFor(one, shared) });
        expect(answer.status, authorization).toBe(401);
      }
      if (!by.includes("client")) expect((await system.call(path, bodyFor(one, shared))).status).toBe(401);
    });

    test.each(scopes ?? [])("needs the scope %s of a project token", async (scope) => {
      const world = await worldToUse();
      const others = Scope.options.filter((other) => other !== scope);
      const token = await tokenOf(world, others);
      const refused = await system.call(one.route(world), { token, ...bodyFor(one, world) });
      expect(refused.status).toBe(403);
      expect(refused.problem.errors[0]).toContain(`lacks the scope \`${scope}\``);
      const enough = await tokenOf(world, [...(scopes ?? [])]);
      const allowed = await system.call(one.route(world), { token: enough, ...bodyFor(one, world) });
      expect(allowed.status).toBe(one.status);
    });

    const needed = roleOf(route.access);
    test.each(needed === undefined ? [] : OperatorRole.options)(
      "takes an operator of the role %s, or says why not",
      async (role) => {
        const allowed = roleIncludes(role, needed ?? "admin");
        const world = allowed ? await worldToUse() : shared;
        const token = operators.get(role) ?? "";
        const headers = await operatorHeaders(route, token, world);
        const answer = await system.call(one.route(world), { headers, ...bodyFor(one, world) });
        const isHidden = role === "member" && (by.includes("project") || route.path.includes("/projects/{id}"));
        const refused = isHidden ? 404 : 403;
        expect(answer.status, JSON.stringify(answer.body)).toBe(allowed ? one.status : refused);
        if (isHidden && !allowed) expect(answer.problem.errors).toEqual(["project: project not found"]);
        else if (!allowed)
          expect(answer.problem.errors[0]).toContain(
            `this needs the role \`${needed}\`; the operator ${role} has \`${role}\``,
          );
      },
    );

    const grant = by.includes("operator") ? route.access.grant : needed;
    testIf(grant !== undefined)("takes a member whose grant in that project suffices", async () => {
      const world = await worldToUse();
      const { id } = world.project;
      const call = async (projects: readonly ProjectGrant[]) => {
        const headers = await operatorHeaders(route, await memberOf(projects), world);
        return system.call(pathOf(route, world), { headers, ...bodyFor(one, world) });
      };
      const elsewhere = { id: stranger.id, role: "admin" } as const;
      const isApproval = grant === "approve";
      const tooLow = ProjectRole.options.filter((lower) => isApproval || !roleIncludes(lower, grant ?? "admin"));
      for (const role of tooLow) expect((await call([elsewhere, { id, role }])).status, role).toBe(403);
      expect((await call([elsewhere])).problem.errors).toEqual(["project: project not found"]);
      const enough = isApproval ? ({ role: "viewer", approve: true } as const) : { role: grant as ProjectRole };
      const answer = await call([elsewhere, { id, ...enough }]);
      expect(answer.status, JSON.stringify(answer.body)).toBe(one.status);
    });

    testIf(needed !== undefined && by.includes("project"))("wants the project of an operator", async () => {
      const token = operators.get("admin") ?? "";
      const call = { token, ...bodyFor(one, shared) };
      const missing = await system.call(one.route(shared), call);
      expect([missing.status, missing.problem.errors]).toEqual([
        403,
        ["authorization: an operator names the project in the header `Herald-Project`"],
      ]);
      const unknown = { "herald-project": "prj_00000000000000000000000000" };
      expect((await system.call(one.route(shared), { ...call, headers: unknown })).status).toBe(404);
    });

    testIf(by.includes("project"))("gives nothing of one project to another", async () => {
      const answer = await system.call(one.route(shared), { token: stranger.token, ...bodyFor(one, shared) });
      expect(answer.status, JSON.stringify(answer.body)).toBe(one.foreign ?? 404);
      const shown = JSON.stringify(answer.body ?? {});
      for (const secret of [shared.device.token, shared.project.id, shared.notification.id])
        expect(shown).not.toContain(secret);
    });

    testIf(by.includes("device") && route.path.includes("{id}"))("takes that device's credential alone", async () => {
      const world = await worldToUse("credential");
      const path = one.route(world);
      const body = bodyFor(one, world);
      expect((await system.call(path, { token: other.credential, ...body })).status).toBe(403);
      expect((await system.call(path, { token: world.credential, ...body })).status).toBe(one.status);
    });

    testIf(scopes !== undefined && !by.includes("device"))("takes no device credential", async () => {
      const answer = await system.call(one.route(shared), { token: shared.credential, ...bodyFor(one, shared) });
      expect(answer.status).toBe(403);
    });
  },
);
