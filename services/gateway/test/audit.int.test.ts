import { lastMessage } from "@herald/bus";
import { AuditRecordedV1, type DataOf } from "@herald/contracts";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { allRoutes } from "../src/routes/all-routes.ts";
import { adminToken, type GatewayTest, startGatewayTest, type TestProject } from "./gateway-fixture.ts";
import { createWorld, partsOf } from "./new-world.ts";
import type { World } from "./route-case.ts";
import { table } from "./route-table.ts";

let system: GatewayTest;
let project: TestProject;
beforeAll(async () => {
  system = await startGatewayTest();
  project = await system.project();
});
afterAll(() => system.stop());

const last = async (): Promise<DataOf<typeof AuditRecordedV1> | undefined> =>
  (await lastMessage(system.bus, "PUSH_EVENTS", "push.evt.v1.installation.audit.recorded", AuditRecordedV1))?.data;

test("a change has who, what, from where, and what was there before, without secrets", async () => {
  const token = await system.operator("admin");
  const answer = await system.call(`PATCH /admin/v1/projects/${project.id}`, {
    token,
    body: { project: { name: "Store" } },
  });
  expect(answer.status).toBe(200);
  expect(await last()).toMatchObject({
    operator: { name: "admin", role: "admin", id: expect.stringMatching(/^opr_/) },
    action: "changeProject",
    target_project_id: project.id,
    target: `/admin/v1/projects/${project.id}`,
    address: "127.0.0.1",
    request_id: answer.headers.get("x-request-id"),
    before: { id: project.id, name: "Test" },
    after: { project: { name: "Store" } },
  });
});

test("the request id of a row is none that a client chose", async () => {
  const answer = await system.call(`PATCH /admin/v1/projects/${project.id}`, {
    token: adminToken,
    headers: { "x-request-id": "chosen" },
    body: { project: { name: "Store" } },
  });
  expect(answer.headers.get("x-request-id")).toBe("chosen");
  expect((await last())?.request_id).toMatch(/^[0-9a-f-]{36}$/);
});

test("a change of a device has the names of its fields alone", async () => {
  const token = await system.operator("operator");
  const device = { platform: "ios", token: "ab".repeat(32), metadata: { name: "Ann" }, identifiers: { id: "ann" } };
  await system.call("POST /api/v1/devices", { token, headers: { "herald-project": project.id }, body: { device } });
  const fields = ["device.token", "device.platform", "device.metadata", "device.identifiers"];
  expect(await last()).toMatchObject({ action: "registerDevice", after: { fields } });
});

test("keys of a provider are in no row", async () => {
  const settings = table.putApnsProvider?.body?.({} as World) as { private_key: string; key_id: string };
  const put = () =>
    system.call(`PUT /admin/v1/projects/${project.id}/providers/apns`, { token: adminToken, body: settings });
  await put();
  const first = await last();
  expect(first).toMatchObject({ action: "putApnsProvider", before: null, after: { private_key: "[masked]" } });
  expect((await put()).status).toBe(200);
  const second = await last();
  expect(second?.before).not.toBeNull();
  expect(JSON.stringify([first, second])).not.toContain(settings.private_key);
});

test("a deletion shows what was deleted", async () => {
  const gone = await system.project("Gone");
  await system.call(`DELETE /admin/v1/projects/${gone.id}`, { token: adminToken });
  expect(await last()).toMatchObject({ operator: { id: "root" }, before: { name: "Gone" }, after: null });
});

test("a send by an operator has a row with its size, and neither title nor targets", async () => {
  const token = await system.operator("operator");
  const body = { notification: { title: "For Ann alone", targets: ["user:ann"] } };
  const headers = { "herald-project": project.id };
  expect((await system.call("POST /api/v1/notifications", { token, headers, body })).status).toBe(202);
  const row = await last();
  expect(row).toMatchObject({ action: "sendNotification", target_project_id: project.id, after: { targets: 1 } });
  // Ids of the row are random and in lower case, so no shorter part of the words is sure to be in none.
  for (const secret of ["Ann", "alone", "user:ann"]) expect(JSON.stringify(row)).not.toContain(secret);
  expect((await system.call("DELETE /api/v1/users/ann", { token, headers })).status).toBe(202);
  expect(await last()).toMatchObject({ action: "eraseUser", target: "/api/v1/users/{user}" });
});

test("a send by a project token, and a read or a dry run by an operator, have none", async () => {
  const token = await system.operator("operator");
  const before = await last();
  const body = { notification: { title: "Hello", targets: ["all"] } };
  const dryRun = { notification: { ...body.notification, dry_run: true } };
  const headers = { "herald-project": project.id };
  expect((await system.call("POST /api/v1/notifications", { token, headers, body: dryRun })).status).toBe(200);
  await system.call("POST /api/v1/notifications", { token: project.token, body });
  await system.call("GET /admin/v1/projects", { token: adminToken });
  expect(await last()).toEqual(before);
});

test("signing in has a row, by token and by code", async () => {
  const token = await system.operator("admin");
  await system.session(token);
  expect(await last()).toMatchObject({ action: "createSession", operator: { role: "admin" } });
  const { code } = (await system.call("POST /admin/v1/sessions/codes", { token })).body.data;
  expect(await last()).toMatchObject({ action: "createSignInCode" });
  expect((await system.call("POST /admin/v1/sessions", { body: { code } })).status).toBe(201);
  const row = await last();
  expect(row).toMatchObject({ action: "createSession", operator: { name: "admin" } });
  expect(JSON.stringify(row)).not.toContain(code);
});

describe("without the bus", () => {
  test("nothing is changed that has no row", async () => {
    const asked = system.peers.asked.length;
    await system.proxy.cut();
    const answer = await system.call(`PATCH /admin/v1/projects/${project.id}`, {
      token: adminToken,
      body: { project: { name: "Unseen" } },
    });
    expect(answer.status).toBe(503);
    await system.proxy.heal();
    await system.ready();
    expect(system.peers.asked.slice(asked).map(({ question }) => question)).not.toContain("registry.projects.change");
  });
});

const changes = allRoutes.filter(({ method, path }) => path.startsWith("/admin/") && method !== "get");
test.each(changes.map((route) => [`${route.method.toUpperCase()} ${route.path}`, route] as const))(
  "%s has a row",
  async (_, route) => {
    const one = table[route.operationId];
    const world = await createWorld(system, one ? partsOf(one) : []);
    const credential = one?.session ? { headers: await system.session(adminToken) } : { token: adminToken };
    const body = one?.body === undefined ? {} : { body: one.body(world) };
    await system.call(one?.route(world) ?? "", { ...credential, ...body });
    expect(await last()).toMatchObject({ action: route.operationId, operator: { id: "root" } });
  },
);
