import { lastMessage, openBucket } from "@herald/bus";
import { AuditRecordedV1, installation, projectRulesKey, RulesRecord } from "@herald/contracts";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { adminToken, type GatewayTest, startGatewayTest, type TestProject } from "./gateway-fixture.ts";
import { createWorld } from "./new-world.ts";

let system: GatewayTest;
let project: TestProject;
beforeAll(async () => {
  system = await startGatewayTest();
  project = await system.project();
});
afterAll(() => system.stop());

const inAnHour = () => new Date(Date.now() + 3_600_000);
const pausePath = () => `POST /admin/v1/projects/${project.id}/pause`;
const auditRow = async () =>
  (await lastMessage(system.bus, "PUSH_EVENTS", "push.evt.v1.installation.audit.recorded", AuditRecordedV1))?.data;
/** The last request of this name that a peer got. */
const lastAsked = (name: string) => system.peers.asked.findLast(({ question }) => question === name)?.data;

describe("a project", () => {
  afterEach(async () => {
    await system.call(`POST /admin/v1/projects/${project.id}/resume`, { token: adminToken });
  });

  test("is paused with who, why and until when, and resumed", async () => {
    const token = await system.operator("operator");
    const until = inAnHour();
    const local = `${new Date(until.getTime() + 2 * 3_600_000).toISOString().slice(0, -1)}+02:00`;
    const body = { reason: "the link leads to yesterday's sale", until: local };
    const answer = await system.call(pausePath(), { token, body });
    expect(answer.status, answer.text).toBe(200);
    const by = { id: expect.stringMatching(/^opr_/), name: "operator" };
    const paused = { at: expect.any(String), by, reason: body.reason, until: until.toISOString(), of: "project" };
    expect(answer.body.data).toMatchObject({ id: project.id, paused });
    expect(await auditRow()).toMatchObject({
      action: "pauseProject",
      target_project_id: project.id,
      after: body,
    });
    const read = await system.call(`GET /admin/v1/projects/${project.id}`, { token });
    expect(read.body.data.paused).toEqual(paused);

    const resumed = await system.call(`POST /admin/v1/projects/${project.id}/resume`, { token });
    expect([resumed.status, resumed.body.data.paused]).toEqual([200, undefined]);
    expect(lastAsked("registry.projects.resume")).toEqual({ projectId: project.id, by });
  });

  test("is paused without a body, by a member with the grant `operator`, not with less", async () => {
    const grant = (role: "viewer" | "operator", id = project.id) => system.operator("member", [{ id, role }]);
    const answer = await system.call(pausePath(), { token: await grant("operator") });
    expect([answer.status, answer.body.data?.paused.by.name]).toEqual([200, "member"]);
    const elsewhere = (await system.project()).id;
    for (const verb of ["pause", "resume"]) {
      const call = async (token: string) => {
        const { status } = await system.call(`POST /admin/v1/projects/${project.id}/${verb}`, { token });
        return status;
      };
      expect(await call(await grant("viewer"))).toBe(403);
      expect(await call(await system.operator("viewer"))).toBe(403);
      expect(await call(await grant("operator", elsewhere))).toBe(404);
      expect(await call(project.token)).toBe(401);
    }
  });

  test.each<[string, unknown, string[]]>([
    ["a reason of 201 characters", { reason: "x".repeat(201) }, ["reason: must be at most 200 characters"]],
    ["an empty reason", { reason: "" }, ["reason: may not be empty"]],
    ["a line break", { reason: "a\nb" }, ["reason: may not contain control characters"]],
    [
      "a time without a zone",
      { until: "2999-01-31T10:00:00" },
      ["until: must be an RFC 3339 time with offset, such as 2030-01-31T10:00:00+01:00"],
    ],
    ["an unknown field", { reasons: "x" }, ["reasons: unknown field; did you mean `reason`?"]],
    ["a time that has passed", { until: "2020-01-31T10:00:00+01:00" }, ["until: must be in the future"]],
  ])("is not paused with %s", async (_, body, errors) => {
    for (const path of [pausePath(), "POST /admin/v1/pause"]) {
      const answer = await system.call(path, { token: adminToken, body });
      expect([answer.status, answer.problem.errors]).toEqual([422, errors]);
    }
  });
});

test("all projects are paused by an admin alone, and every operator with a role reads it", async () => {
  const [admin, operator, viewer] = [
    await system.operator("admin", []),
    await system.operator("operator"),
    await system.operator("viewer"),
  ];
  const granted = await system.operator("member", [{ id: project.id, role: "admin" }]);
  for (const verb of ["pause", "resume"])
    for (const token of [operator, viewer, granted])
      expect((await system.call(`POST /admin/v1/${verb}`, { token })).status).toBe(403);
  for (const route of ["POST /admin/v1/pause", "POST /admin/v1/resume", "GET /admin/v1/installation"])
    expect((await system.call(route, { token: project.token })).status).toBe(401);
  expect((await system.call("GET /admin/v1/installation", { token: granted })).status).toBe(403);

  const answer = await system.call("POST /admin/v1/pause", { token: admin, body: { reason: "an attack" } });
  const paused = { by: { name: "admin" }, reason: "an attack", of: "installation" };
  expect(answer).toMatchObject({ status: 200, body: { data: { paused } } });
  expect(await auditRow()).toMatchObject({ action: "pauseInstallation", after: { reason: "an attack" } });
  const read = () => system.call("GET /admin/v1/installation", { token: viewer });
  expect((await read()).body.data).toMatchObject({ paused });
  expect((await system.call("POST /admin/v1/resume", { token: admin })).body.data).toEqual({});
  expect((await read()).body.data).toEqual({});
});

describe("a notification", () => {
  test("is paused and resumed by a token or an operator of its project", async () => {
    const { project: own, notification } = await createWorld(system, ["notification"]);
    const path = `/api/v1/notifications/${notification.id}`;
    const token = await system.token(own, ["send"]);
    const paused = await system.call(`POST ${path}/pause`, { token });
    expect(paused.status, paused.text).toBe(200);
    expect(paused.body.data).toMatchObject({
      status: "paused",
      paused: { by: { id: expect.stringMatching(/^tok_/) } },
    });
    expect(paused.body.data).not.toHaveProperty("opens");
    const resumed = await system.call(`POST ${path}/resume`, { token });
    expect([resumed.status, resumed.body.data.paused]).toEqual([200, undefined]);

    const headers = { "herald-project": own.id };
    const operator = await system.operator("member", [{ id: own.id, role: "operator" }]);
    const body = { reason: "a wrong link" };
    const again = await system.call(`POST ${path}/pause`, { token: operator, headers, body });
    expect(again.body.data.paused).toMatchObject({ by: { name: "member" }, reason: "a wrong link" });
    expect(await auditRow()).toMatchObject({ action: "pauseNotification", after: { fields: ["reason"] } });
    const viewer = await system.operator("member", [{ id: own.id, role: "viewer" }]);
    const stranger = await system.token(project, ["send"]);
    const reader = await system.token(own, ["read"]);
    for (const verb of ["pause", "resume"]) {
      expect((await system.call(`POST ${path}/${verb}`, { token: viewer, headers })).status).toBe(403);
      expect((await system.call(`POST ${path}/${verb}`, { token: reader })).status).toBe(403);
      expect((await system.call(`POST ${path}/${verb}`, { token: stranger })).status).toBe(404);
    }
  });

  test("that has ended is neither paused nor resumed", async () => {
    const { project: own, notification } = await createWorld(system, ["notification"]);
    const found = system.peers.notifications.get(notification.id);
    if (found) found.value = { ...found.value, status: "completed" };
    const path = `POST /api/v1/notifications/${notification.id}`;
    for (const verb of ["pause", "resume"]) {
      const answer = await system.call(`${path}/${verb}`, { token: own.token });
      expect([answer.status, answer.problem.type]).toEqual([409, expect.stringContaining("notification-final")]);
    }
  });
});

test("a dry run and a send of paused projects are answered as before", async () => {
  const rules = openBucket(system.bus, "push_projects", RulesRecord);
  const body = { notification: { title: "Hello", targets: ["all"] } };
  const dryRun = { notification: { ...body.notification, dry_run: true } };
  const call = (sent: unknown) => system.call("POST /api/v1/notifications", { token: project.token, body: sent });
  const before = await call(dryRun);
  const paused = { at: new Date().toISOString(), by: { id: "root" as const, name: "root" } };
  for (const projectId of [project.id, installation] as const)
    await rules.put(projectRulesKey(projectId), { projectId, kinds: [], paused });
  const after = await call(dryRun);
  expect([after.status, after.body]).toEqual([200, before.body]);
  expect(system.peers.asked.at(-1)?.data).not.toHaveProperty("rules");
  expect((await call(body)).status).toBe(202);
});
