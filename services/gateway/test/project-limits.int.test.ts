import { openBucket } from "@herald/bus";
import { StatusReport } from "@herald/contracts";
import { eventually } from "@herald/testing";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createApp } from "../src/app.ts";
import { adminToken, callAt, configOf, type GatewayTest, startGatewayTest } from "./gateway-fixture.ts";

/** Limits of single projects, shared by two gateways. */

let system: GatewayTest;
let second: ReturnType<typeof createApp>;
beforeAll(async () => {
  system = await startGatewayTest();
  second = createApp(configOf(system.broker.url, system.broker.loginOf("gateway")));
  await second.start();
  await report();
  await eventually(
    async () => {
      for (const base of bases()) {
        const { body } = await callAt(base, "GET /admin/v1/status", { token: adminToken });
        expect(body.data.services[0].replicas).toHaveLength(2);
      }
    },
    { timeoutMs: 20_000 },
  );
});
afterAll(async () => {
  await second?.stop();
  await system?.stop();
});
/** Gateways of one process share an instance and its report, so the second one's is written here. */
const report = () => {
  const now = new Date().toISOString();
  const own = {
    service: "gateway" as const,
    instance: "second",
    version: "0.1.0",
    startedAt: now,
    at: now,
    failing: [],
  };
  return openBucket(system.bus, "push_status", StatusReport).put("gateway.second", {
    ...own,
    streams: [],
    durables: [],
  });
};
const bases = () => [system.address(), second.address()];

const change = (id: string, limits: Readonly<Record<string, number | null>>) =>
  system.call(`PATCH /admin/v1/projects/${id}/limits`, { token: adminToken, body: { limits } });
const limitOf = async (id: string, name: string) => {
  const { body } = await system.call(`GET /admin/v1/projects/${id}/limits`, { token: adminToken });
  return body.data.find((one: { name: string }) => one.name === name);
};

test("a limit is set, shown beside its default, and taken back", async () => {
  const { id } = await system.project();
  expect((await change(id, { sends: 10, devices: 5, exports: 0 })).body.data).toEqual({
    sends: 10,
    devices: 5,
    exports: 0,
  });
  await eventually(async () => {
    expect(await limitOf(id, "sends")).toMatchObject({ limit: 10, default: 1_000_000 });
    expect(await limitOf(id, "devices")).toMatchObject({ limit: 5, default: 10_000_000 });
    expect(await limitOf(id, "exports")).toMatchObject({ limit: 0, default: 2 });
  });
  expect((await change(id, { sends: null })).body.data).toEqual({ devices: 5, exports: 0 });
  await eventually(async () =>
    expect(await limitOf(id, "sends")).toMatchObject({ limit: 1_000_000, default: 1_000_000 }),
  );
});

test("the limits of tokens and devices follow that of the project, unless they are set", async () => {
  const { id } = await system.project();
  await change(id, { project: 1_000, device: 7 });
  await eventually(async () => {
    expect(await limitOf(id, "project")).toMatchObject({ limit: 1_000, default: 10_000 });
    expect(await limitOf(id, "token")).toMatchObject({ limit: 500, default: 500 });
    expect(await limitOf(id, "device")).toMatchObject({ limit: 7, default: 10 });
  });
});

test("a limit must be in its range and have a known name", async () => {
  const { id } = await system.project();
  const refused = await change(id, { sends: 0, exports: 101 });
  expect([refused.status, refused.problem.errors]).toEqual([
    422,
    [
      "limits.sends: must be 1 to 1000000000, or null for the default",
      "limits.exports: must be 0 to 100, or null for the default",
    ],
  ]);
  expect((await change(id, { send: 5 })).problem.errors[0]).toContain("sends");
  expect((await change(id, {})).status).toBe(422);
  expect((await change("prj_00000000000000000000000000", { sends: 5 })).status).toBe(404);
});

test("two gateways together send no more than the limit, and apply a changed one within a second, under load", async () => {
  await report();
  const { id, token } = await system.project();
  await change(id, { sends: 10 });
  await eventually(async () => expect((await limitOf(id, "sends")).limit).toBe(10));
  const send = async (base: string) => {
    const body = { notification: { title: "Hello", targets: ["all"] } };
    return (await callAt(base, "POST /api/v1/notifications", { token, body })).status;
  };
  const sendMany = async (each: number): Promise<number> => {
    const statuses = await Promise.all(bases().flatMap((base) => Array.from({ length: each }, () => send(base))));
    return statuses.filter((status) => status === 202).length;
  };
  expect(await sendMany(20)).toBe(10);
  const [changed, meanwhile] = await Promise.all([change(id, { sends: 30 }), sendMany(5)]);
  expect(changed.status).toBe(200);
  let accepted = 10 + meanwhile;
  await eventually(async () => {
    accepted += await sendMany(20);
    expect(accepted).toBe(30);
  });
  expect(await sendMany(20)).toBe(0);
});

test("streams and exports of a project can be turned off", async () => {
  const project = await system.project();
  await change(project.id, { "event-streams": 0, exports: 0 });
  const token = await system.token(project, ["read", "export"]);
  await eventually(async () => expect((await limitOf(project.id, "exports")).limit).toBe(0));
  for (const route of ["GET /api/v1/events", "GET /api/v1/exports/devices"])
    expect((await system.call(route, { token })).status).toBe(429);
});
