import { randomUUID } from "node:crypto";
import { consume, defineHandler, handleRequest } from "@herald/bus";
import { backlogRequests, SendV1 } from "@herald/contracts";
import { eventually, type Request } from "@herald/testing";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { type GatewayTest, startGatewayTest, type TestProject, writtenDocuments } from "./gateway-fixture.ts";
import { createWorld } from "./new-world.ts";

let system: GatewayTest;
let stop = async () => {};
/** Each test has its own gateway, whose limits are still unused. */
afterEach(async () => {
  await stop();
  stop = async () => {};
});

const limited = async (environment: Record<string, string>): Promise<TestProject> => {
  system = await startGatewayTest({ environment });
  stop = system.stop;
  return system.project();
};
const devices = (token: string) => system.call("GET /api/v1/devices", { token });
const send = ({ token }: TestProject, key?: string) =>
  system.call("POST /api/v1/notifications", {
    token,
    body: { notification: { title: "Hi", targets: ["all"] } },
    ...(key === undefined ? {} : { headers: { "idempotency-key": key } }),
  });

describe("requests", () => {
  test("with one token are limited, are told what is left, and leave the project's other tokens alone", async () => {
    const project = await limited({ HERALD_GATEWAY_LIMIT_PROJECT: "10" });
    const other = await system.token(project, ["read"]);
    const first = await devices(project.token);
    expect(first.headers.get("ratelimit-policy")).toBe('"token";q=5;w=10, "project";q=10;w=10');
    expect(first.headers.get("ratelimit")).toMatch(/^"token";r=4;t=\d+, "project";r=9;t=\d+$/);
    // Failed requests count too, and get the same headers.
    const missing = await system.call("GET /api/v1/devices/x", { token: project.token });
    expect([missing.status, missing.headers.get("ratelimit")?.slice(0, 11)]).toEqual([404, '"token";r=3']);
    for (let index = 0; index < 3; index++) await devices(project.token);
    const refused = await devices(project.token);
    expect([refused.status, refused.problem.type]).toEqual([429, "/docs/errors#rate-limited"]);
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
    expect(refused.headers.get("ratelimit")).toMatch(/^"token";r=0;t=\d+$/);
    for (let index = 0; index < 5; index++) expect((await devices(other)).status).toBe(200);
    const third = await system.token(project, ["read"]);
    const over = await devices(third);
    expect([over.status, over.headers.get("ratelimit-policy")]).toEqual([429, '"project";q=10;w=10']);
    expect((await devices((await system.project()).token)).status).toBe(200);
  });

  test("of one device are limited, and no other's", async () => {
    await limited({ HERALD_GATEWAY_LIMIT_PROJECT: "200" });
    const [one, other] = [await createWorld(system), await createWorld(system)];
    const change = (token: string) => system.call("PATCH /api/v1/metadata", { token, body: { metadata: {} } });
    const statuses = [];
    for (let index = 0; index < 3; index++) statuses.push((await change(one.credential)).status);
    expect(statuses).toEqual([200, 200, 429]);
    expect((await change(other.credential)).status).toBe(200);
  });
});

describe("requests without a credential", () => {
  const [ntf, max] = ["ntf_06bq4ghm31tz5d2ns8y7k9w0ac", 3];
  const all = "a&".repeat(100);
  let gateway: GatewayTest;
  let project: TestProject;
  beforeAll(async () => {
    const limits = { HERALD_GATEWAY_LIMIT_CLIENTS: String(max), HERALD_GATEWAY_LIMIT_FAILURES: String(max) };
    gateway = await startGatewayTest({
      environment: { ...limits, HERALD_GATEWAY_TRUST_PROXY: "1" },
      documents: await writtenDocuments(),
    });
    project = await gateway.project();
  });
  afterAll(() => gateway?.stop());

  let addresses = 0;
  /** The calls of a client with an address of its own, behind a proxy. */
  const newClient = () => {
    const headers = { "x-forwarded-for": `198.51.100.${++addresses}` };
    return (route: string, request: Request = {}) => gateway.call(route, { ...request, headers });
  };

  test.each([
    ["GET /api/v1/nothing", 404],
    ["DELETE /api/v1/devices", 405],
    ["OPTIONS /api/v1/devices", 204],
    ["GET /api/v1/devices/%ff", 400],
    ["GET /openapi.json", 200],
    ["GET /docs/errors", 200],
    [`GET /api/v1/webpush-key?${all}`, 422],
    ["GET /api/v1/webpush-key?project=1", 422],
    ["GET /api/v1/devices", 401],
    [`GET /api/v1/events?${all}`, 401],
    ["PUT /api/v1/identification", 400, "{"],
    ["PATCH /api/v1/metadata", 422, "[]"],
    [`PUT /api/v1/notifications/${ntf}/open`, 422, "{}"],
    [`PUT /api/v1/notifications/${ntf}/open?${all}`, 422, "{}"],
  ])("%s: %i until its address has sent too many", async (route, status, body?: string) => {
    const client = newClient();
    const call = async () => (await client(route, body === undefined ? {} : { body })).status;
    const known = async () => (await client("GET /api/v1/devices", { token: project.token })).status;
    const statuses: number[] = [];
    const begun = performance.now();
    while (statuses.slice(-2).join() !== "429,429" && statuses.length < 50) statuses.push(await call());
    // A slow machine may need more than one window of ten seconds.
    const windows = Math.floor((performance.now() - begun) / 10_000) + 1;
    const served = statuses.filter((one) => one !== 429);
    expect(new Set(served)).toEqual(new Set([status]));
    expect(served.length).toBeGreaterThanOrEqual(max);
    expect(served.length).toBeLessThanOrEqual(max * windows);
    // A new token may not be replicated yet. It is accepted while its address is refused.
    await eventually(async () => expect([await call(), await known(), await call()]).toEqual([429, 200, 429]));
  });

  test.each(["GET /livez", "GET /readyz", `OPTIONS /api/v1/notifications/${ntf}/open`])(
    "%s is always answered",
    async (route) => {
      const client = newClient();
      for (let index = 0; index < max + 2; index++) expect((await client(route)).status).toBeLessThan(300);
      expect((await client("GET /api/v1/nothing")).status).toBe(404);
    },
  );
});

describe("a project's quota", () => {
  test("of notifications in an hour counts what is sent, not what is repeated or tried", async () => {
    const project = await limited({ HERALD_GATEWAY_QUOTA_SENDS: "2" });
    const key = randomUUID();
    const first = await send(project, key);
    expect((await send(project, key)).body).toEqual(first.body);
    expect((await send(project)).status).toBe(202);
    const refused = await send(project, randomUUID());
    expect([refused.status, refused.problem.type]).toEqual([429, "/docs/errors#quota-exceeded"]);
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(3_500);
    expect(refused.headers.get("ratelimit-policy")).toBe('"sends";q=2;w=3600');
    expect((await send(project, key)).headers.get("idempotent-replayed")).toBe("true");
    expect((await send(await system.project())).status).toBe(202);
  });

  test("of what waits in the queue refuses more until it is started, and no other project's", async () => {
    const project = await limited({ HERALD_GATEWAY_QUOTA_QUEUED: "5" });
    const statuses = [];
    for (let index = 0; index < 8; index++) statuses.push((await send(project)).status);
    expect(statuses.slice(0, 5)).toEqual([202, 202, 202, 202, 202]);
    expect(statuses.at(-1)).toBe(429);
    const refused = await send(project);
    expect(refused.problem.type).toBe("/docs/errors#quota-exceeded");
    expect(refused.headers.get("retry-after")).toBe("5");
    expect((await send(await system.project())).status).toBe(202);
    const consuming = await consume(system.bus, [
      defineHandler({ durable: "dispatch-start", message: SendV1, handle: async () => {} }),
    ]);
    await eventually(() => expect(consuming.ready()).toBe(true));
    // Dispatch answers so when its backlog has none of the project's sends. Until then all accepted sends count as waiting.
    expect((await send(project)).status).toBe(429);
    const answering = handleRequest(system.bus, backlogRequests.count, async () => ({ queued: 0 }));
    await eventually(async () => expect((await send(project)).status).toBe(202));
    await answering.stop();
    await consuming.stop(2_000);
  });
});

test("a project's limits are listed with what is in use; what cannot be counted now has no `used`", async () => {
  const project = await limited({ HERALD_GATEWAY_QUOTA_SENDS: "7" });
  expect((await send(project)).status).toBe(202);
  const viewer = await system.operator("viewer");
  const read = () => system.call(`GET /admin/v1/projects/${project.id}/limits`, { token: viewer });
  const { status, body } = await read();
  expect(status).toBe(200);
  const limits = new Map<string, Record<string, unknown>>(
    body.data.map((one: { name: string }) => [one.name, one] as const),
  );
  expect(limits.get("sends")).toEqual({
    name: "sends",
    description: "Notifications; dry runs do not count",
    limit: 7,
    default: 7,
    seconds: 3_600,
    used: 1,
    counted_by: "gateway",
    variable: "HERALD_GATEWAY_QUOTA_SENDS",
  });
  expect(limits.get("event-streams")).toMatchObject({ limit: 20, used: 0 });
  expect(limits.get("event-streams")).not.toHaveProperty("variable");
  expect(limits.get("devices")).toMatchObject({ limit: 10_000_000, used: 3, counted_by: "installation" });
  expect(limits.get("token")).toMatchObject({ limit: 5_000, variable: "HERALD_GATEWAY_LIMIT_PROJECT" });
  expect(limits.get("token")).not.toHaveProperty("used");
  // Dispatch does not answer in this test, and only dispatch knows its backlog.
  expect(limits.get("queued")).not.toHaveProperty("used");
  const answering = handleRequest(system.bus, backlogRequests.count, async () => ({ queued: 4 }));
  await eventually(async () =>
    expect((await read()).body.data).toContainEqual(expect.objectContaining({ name: "queued", used: 5 })),
  );
  await answering.stop();
});
