import { eventually, request } from "@herald/testing";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createApp } from "../src/app.ts";
import {
  adminToken,
  callAt,
  configOf,
  type GatewayTest,
  startGatewayTest,
  type TestProject,
  writtenDocuments,
} from "./gateway-fixture.ts";

let system: GatewayTest;
let project: TestProject;
let app: ReturnType<typeof createApp>;
const operators = () => app.adminAddress() ?? "";
beforeAll(async () => {
  system = await startGatewayTest();
  project = await system.project();
  const environment = { ...system.broker.loginOf("gateway"), HERALD_GATEWAY_ADMIN_PORT: "0" };
  app = createApp(configOf(system.broker.url, environment), { documents: await writtenDocuments() });
  await app.start();
  await eventually(async () => expect((await request(operators(), "GET /readyz")).status).toBe(200));
});
afterAll(async () => {
  await app.stop();
  await system.stop();
});

test("the two ports have addresses of their own; with one port they are the same", () => {
  expect(operators()).not.toBe(app.address());
  expect(operators()).toMatch(/^http:\/\/127\.0\.0\.1:/);
});

describe("the public port", () => {
  test.each([
    "GET /admin/v1/projects",
    "POST /admin/v1/sessions",
    "GET /console",
    "GET /console/",
    "GET /admin/v1/audit",
  ])("has no %s", async (route) => {
    expect((await request(app.address(), route, { token: adminToken })).status).toBe(404);
  });

  test("has no console, built or not", async () => {
    for (const path of ["/console", "/console/", "/console/assets/main.js", "/console/p/prj_1"]) {
      const { status, problem } = await callAt(app.address(), `GET ${path}`);
      expect([path, status, problem.errors[0]]).toEqual([path, 404, expect.stringContaining("route not found")]);
    }
  });

  test("serves apps, the documents and the probes", async () => {
    expect((await callAt(app.address(), "GET /api/v1/devices", { token: project.token })).status).toBe(200);
    for (const route of ["GET /docs", "GET /openapi.json", "GET /livez", "GET /readyz"])
      expect((await request(app.address(), route)).status).toBe(200);
  });

  test("documents no route for operators, which the other port does", async () => {
    const documented = async (address: string) =>
      Object.keys((await request(address, "GET /openapi.json")).body.paths).some((path) => path.startsWith("/admin/"));
    expect([await documented(app.address()), await documented(operators())]).toEqual([false, true]);
  });

  test("accepts no operator, by token or by session", async () => {
    const headers = { "herald-project": project.id };
    const token = await system.operator("admin");
    for (const secret of [token, adminToken]) {
      const refused = await callAt(app.address(), "GET /api/v1/devices", { token: secret, headers });
      expect([refused.status, refused.problem.errors]).toEqual([403, ["authorization: operators use the admin port"]]);
    }
    const session = { ...(await system.session(token)), ...headers };
    expect((await callAt(app.address(), "GET /api/v1/devices", { headers: session })).status).toBe(401);
  });
});

describe("the admin port", () => {
  test("serves the console", async () => {
    const answer = await fetch(`${operators()}/console/`);
    const text = await answer.text();
    if (answer.ok) expect(text).toContain("<html");
    else expect(text).toContain("the console is not built"); // as in a checkout without `npm run build`
  });

  test("serves operators, by token and by session, and apps", async () => {
    const token = await system.operator("viewer");
    const headers = { ...(await system.session(token)), "herald-project": project.id };
    expect((await callAt(operators(), "GET /admin/v1/projects", { token })).status).toBe(200);
    expect((await callAt(operators(), "GET /api/v1/devices", { headers })).status).toBe(200);
    expect((await callAt(operators(), "GET /api/v1/devices", { token: project.token })).status).toBe(200);
  });
});

test.each(["GET /admin/v1/projects/{id}", "GET /admin/v1/audit", "GET /api/v1/devices"])(
  "what is wrong with a query is said only to a known caller: %s",
  async (route) => {
    const path = `${route.replace("{id}", project.id)}?project_id=%ff`;
    expect((await request(operators(), path)).status).toBe(401);
    const headers = { "herald-project": project.id };
    expect((await request(operators(), path, { token: adminToken, headers })).status).toBe(422);
  },
);
