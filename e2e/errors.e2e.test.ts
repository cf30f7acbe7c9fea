import { execFile } from "node:child_process";
import { randomUUID } from "node:crypto";
import { promisify } from "node:util";
import { eventually, expectStatus, type Request, request } from "@herald/testing";
import { describe, expect } from "vitest";
import { expectProblem } from "./harness/expect-problem.ts";
import { apnsToken, type Project } from "./harness/project.ts";
import { test } from "./harness/shared-system.ts";
import { logOnFailure, type System } from "./harness/system.ts";

const run = promisify(execFile);
let system: System;
let project: Project;
let stranger: Project;
/** Values of the projects, for the calls of the tables. */
const made = { device: "", credential: "", token: "", topic: "", notification: "", readOnly: "" };
const foreign = { device: "", topic: "", notification: "" };
test.beforeAll(async ({ system: shared }) => {
  system = shared;
  [project, stranger] = [await system.project(), await system.project()];
  const { device, credential } = await project.register();
  Object.assign(made, { device: device.id, token: device.token, credential });
  made.topic = (await project.call("POST /topics", { body: { topic: { name: "taken" } } })).body.data.id;
  made.notification = (await project.send({ title: "Done", targets: [device.id] })).id;
  const scoped = { body: { token: { name: "Reader", scopes: ["read"] } } };
  made.readOnly = (await system.admin(`POST /projects/${project.id}/tokens`, scoped)).body.token;
  foreign.device = (await stranger.register()).device.id;
  foreign.topic = (await stranger.call("POST /topics", { body: { topic: { name: "secret" } } })).body.data.id;
  foreign.notification = (await stranger.send({ title: "Secret", targets: [foreign.device] })).id;
  await project.final(made.notification);
});
logOnFailure(() => system);

const example = "01m7yrszajfsprzbd1z1br2ywr";
const send = (notification: unknown): Request => ({ body: { notification } });

test("every answer ends with a line, after which a shell begins its prompt", async () => {
  const { gateway, simulators, admin } = { ...system, simulators: system.simulators.url, admin: system.adminToken };
  const curl = async (url: string, ...more: string[]) => (await run("curl", ["-s", ...more, url])).stdout;
  const bearer = (token: string) => ["-H", `Authorization: Bearer ${token}`];
  const answers = await Promise.all([
    curl(`${gateway}/api/v1/devices`, ...bearer(project.token)),
    curl(`${gateway}/api/v1/devices`),
    curl(`${gateway}/api/v1/nothing`),
    curl(`${gateway}/admin/v1/projects`, ...bearer(admin)),
    curl(`${gateway}/readyz`),
    curl(`${gateway}/readyz`, "-H", "Transfer-Encoding: wrong"),
    ...["pushes", "info", "stats", "script", "nothing"].map((path) => curl(`${simulators}/${path}`)),
  ]);
  for (const answer of answers) expect(answer.slice(-2)).toBe("}\n");
});

type Case = [what: string, route: () => string, options: () => Request, status: number, says: RegExp];

test.for<Case>([
  ["half a JSON", () => "POST /devices", () => ({ body: '{ "device": ' }), 400, /^body: is not JSON/],
  ["no JSON", () => "POST /notifications", () => ({ body: "title=Hello" }), 400, /^body: is not JSON/],
  ["no credential", () => "GET /devices", () => ({ token: undefined }), 401, /^authorization: send `Bearer`/],
  [
    "an unknown credential",
    () => "GET /devices",
    () => ({ token: "hpt_nobody" }),
    401,
    /^authorization: the credential is invalid/,
  ],
  [
    "the admin's where a project's is due",
    () => "GET /devices",
    () => ({ token: system.adminToken }),
    401,
    /authorization/,
  ],
  [
    "a token without the scope",
    () => "POST /notifications",
    () => ({ token: made.readOnly, ...send({}) }),
    403,
    /scope `send`/,
  ],
  [
    "a device's where a project's is due",
    () => "GET /devices",
    () => ({ token: made.credential }),
    403,
    /project token/,
  ],
  ["another device", () => `GET /devices/${foreign.device}`, () => ({ token: made.credential }), 403, /./],
  ["no such route", () => "GET /phones", () => ({}), 404, /openapi\.json/],
  ["no such device", () => `GET /devices/dev_${example}`, () => ({}), 404, /device/],
  [
    "another project's device",
    () => `PATCH /devices/${foreign.device}`,
    () => ({ body: { device: { status: "inactive" } } }),
    404,
    /device/,
  ],
  ["another project's topic", () => `DELETE /topics/${foreign.topic}`, () => ({}), 404, /topic/],
  [
    "another project's notification",
    () => `GET /notifications/${foreign.notification}`,
    () => ({}),
    404,
    /notification/,
  ],
  [
    "another project's deliveries",
    () => `GET /notifications/${foreign.notification}/deliveries`,
    () => ({}),
    404,
    /notification/,
  ],
  ["a method that the route has not", () => "PATCH /devices", () => ({}), 405, /GET, HEAD, POST/],
  ["a topic that exists", () => "POST /topics", () => ({ body: { topic: { name: "taken" } } }), 409, /topic/],
  ["cancelling what is done", () => `DELETE /notifications/${made.notification}`, () => ({}), 409, /./],
  ["a body of two megabytes", () => "POST /notifications", () => send({ body: "x".repeat(2_000_000) }), 413, /bytes/],
  [
    "text",
    () => "POST /devices",
    () => ({ body: "{}", headers: { "content-type": "text/plain" } }),
    415,
    /application\/json/,
  ],
  ["a page past the limit", () => "GET /devices?per_page=101", () => ({}), 422, /^per_page: .*1 to 100/],
  ["page and after", () => "GET /topics?page=1&after=", () => ({}), 422, /^after: /],
  ["an unknown parameter", () => "GET /devices?state=active", () => ({}), 422, /state/],
  [
    "an operator for a value",
    () => "POST /devices",
    () => ({ body: { device: { token: { $ne: null }, platform: "ios" } } }),
    422,
    /device\.token/,
  ],
  [
    "a key that begins with $",
    () => "PATCH /metadata",
    () => ({ body: { device_id: made.device, metadata: { $set: 1 } } }),
    422,
    /metadata/,
  ],
  [
    "a key with a dot",
    () => "PATCH /metadata",
    () => ({ body: { device_id: made.device, metadata: { "a.b": 1 } } }),
    422,
    /metadata/,
  ],
  [
    "a topic that is called all",
    () => "POST /topics",
    () => ({ body: { topic: { name: "all" } } }),
    422,
    /topic\.name: .*all/,
  ],
  [
    "a token that is none of Apple's",
    () => "POST /devices",
    () => ({ body: { device: { token: "hello", platform: "ios" } } }),
    422,
    /device\.token: .*hexadecimal/,
  ],
  [
    "more than Apple takes",
    () => "POST /notifications",
    () => send({ body: "ü".repeat(2_500), targets: ["all"] }),
    422,
    /4.?096/,
  ],
  [
    "a title of 257",
    () => "POST /notifications",
    () => send({ title: "x".repeat(257), targets: ["all"] }),
    422,
    /notification\.title: .*256/,
  ],
  [
    "a life of a year",
    () => "POST /notifications",
    () => send({ title: "x", targets: ["all"], ttl: 31_536_000 }),
    422,
    /notification\.ttl: .*28 days/,
  ],
])("%s", async ([, route, options, status, says]) => {
  const { errors } = expectProblem(await project.call(route(), options()), status);
  expect(errors.join("\n")).toMatch(says);
});

test("an error names every wrong field at once, with what would be accepted", async () => {
  const answer = await project.call("POST /notifications?dry=1", {
    body: {
      notification: {
        titel: "Hello",
        targets: ["metadata:plan", "two words"],
        link_to: "nowhere",
        badge: -1,
        priority: "urgent",
        send_at: "tomorrow",
        collapse_id: "x".repeat(65),
      },
      to: "all",
    },
  });
  const { errors } = expectProblem(answer, 422);
  for (const field of [
    "dry",
    "to",
    "notification.titel",
    "notification.targets.0",
    "notification.targets.1",
    "notification.link_to",
    "notification.badge",
    "notification.priority",
    "notification.send_at",
    "notification.collapse_id",
  ])
    expect(
      errors.filter((error) => error.startsWith(`${field}: `)),
      `${field} in ${errors.join("\n")}`,
    ).toHaveLength(1);
  expect(errors.join("\n")).toMatch(/notification\.titel: .*`?title`?/);
  expect(await project.notifications()).toHaveLength(1);
});

test("a refused request changes nothing", async () => {
  const { device, credential } = await project.register({ metadata: { plan: "free" } });
  const body = { device: { metadata: { plan: "pro" }, identifiers: { "a.b": 1 } } };
  expectProblem(await project.call(`PATCH /devices/${device.id}`, { body }), 422);
  const full = {
    device_id: device.id,
    metadata: Object.fromEntries(Array.from({ length: 64 }, (_, n) => [`k${n}`, n])),
  };
  // Each key is valid, but together they exceed the limit by one.
  expectProblem(await project.call("PATCH /metadata", { body: full }), 422);
  expect((await project.call(`GET /devices/${device.id}`)).body.data.metadata).toEqual({ plan: "free" });
  const identification = {
    project_id: project.id,
    platform: "ios",
    identifier: made.token,
    previous_identifier: device.token,
  };
  expectProblem(
    await request(system.gateway, "PUT /api/v1/identification", { body: identification, token: credential }),
    409,
  );
  expect((await project.call(`GET /devices/${device.id}`)).body.data.token).toBe(device.token);
});

test("a token that two platforms have needs its platform", async () => {
  const token = apnsToken();
  await project.register({ token });
  await project.register({ token, platform: "android" });
  const change = { project_id: project.id, identifier: token, metadata: { seen: true } };
  const patch = (body: object) => request(system.gateway, "PATCH /api/v1/metadata", { body });
  expect(expectProblem(await patch(change), 422).errors.join()).toMatch(/platform/);
  expect((await patch({ ...change, platform: "android" })).status).toBe(200);
});

describe("the administration", () => {
  test("needs its own token", async () => {
    expectProblem(await system.admin("GET /projects", { token: project.token }), 401);
    expectProblem(await system.admin("GET /projects", { token: undefined }), 401);
  });

  test("explains wrong provider settings, and keeps the old ones", async () => {
    const settings = {
      key_id: "E2EKEY0001",
      team_id: "E2ETEAM001",
      private_key: "-----BEGIN PRIVATE KEY-----\nbm90IGEga2V5\n-----END PRIVATE KEY-----",
      bundle_id: "com.example.e2e",
      environment: "sandbox",
    };
    const route = `PUT /projects/${project.id}/providers/apns`;
    const wrongKey = await system.admin(route, { body: settings });
    expect(expectProblem(wrongKey, 422).errors.join()).toMatch(/private_key/);
    expect(wrongKey.text).not.toContain("bm90IGEga2V5");
    expectProblem(await system.admin(route, { body: { ...settings, key_id: "short", environment: "moon" } }), 422);
    const { data } = (await system.admin(`GET /projects/${project.id}/providers/apns`)).body;
    expect(data).toMatchObject({ status: "active", settings: { key_id: "E2EKEY0001" } });
    expect(JSON.stringify(data)).not.toContain("PRIVATE KEY");
  });

  test("a revoked token and every token of a deleted project are refused", async () => {
    const other = await system.project();
    const tokens = `/projects/${other.id}/tokens`;
    const { data, token } = (await system.admin(`POST ${tokens}`, { body: { token: { name: "Second" } } })).body;
    await eventually(async () => expect((await other.call("GET /devices", { token })).status).toBe(200));
    expectStatus(await system.admin(`DELETE ${tokens}/${data.id}`), 204);
    await eventually(async () => expect((await other.call("GET /devices", { token })).status).toBe(401));
    expect((await other.call("GET /devices")).status).toBe(200);

    expectStatus(await system.admin(`DELETE /projects/${other.id}`), 204);
    await eventually(async () => expect((await other.call("GET /devices")).status).toBe(401));
    expectProblem(await system.admin(`GET /projects/${other.id}`), 404);
    const client = { project_id: other.id, identifier: apnsToken(), platform: "ios" };
    await eventually(async () =>
      expect((await request(system.gateway, "PUT /api/v1/identification", { body: client })).status).toBe(404),
    );
  });
});

describe("request ids", () => {
  test("a client's request id is in the response, in the error and in the log", async () => {
    const id = `req-${randomUUID()}`;
    const answer = await project.call("GET /devices/nonsense", { headers: { "x-request-id": id } });
    expect(expectProblem(answer, 404).instance).toBe(id);
    expect(answer.headers.get("x-request-id")).toBe(id);
    await eventually(() => {
      const lines = system.logs.lines.filter(({ requestId }) => requestId === id);
      expect(lines).toMatchObject([{ part: "gateway", msg: "request", status: 404 }]);
    });
  });

  test.for(["", "has spaces", "x".repeat(300), 'quote"d'])("%j is replaced by a new one", async (sent) => {
    const answer = await project.call("GET /devices", { headers: { "x-request-id": sent } });
    expect(answer.status).toBe(200);
    expect(answer.headers.get("x-request-id")).toMatch(/^[0-9a-f-]{36}$/);
  });
});
