import { type Answered, eventually, request } from "@herald/testing";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { checkInvariants, nothingBroken } from "./harness/invariants.ts";
import { type Load, sendSurely, startLoad } from "./harness/load.ts";
import { apnsToken, type Project } from "./harness/project.ts";
import { seed } from "./harness/seed.ts";
import { payloadOf } from "./harness/simulators.ts";
import { type ServiceName, type System, startSystem, tellOnFailure } from "./harness/system.ts";

const audience = 1_000;
/** A batch whose broker or database went away is taken up after the ack wait at the latest. */
const recoveryMs = 60_000;

let system: System;
let project: Project;
let load: Load;
beforeAll(async () => {
  system = await startSystem();
  await system.simulators.script([{ provider: "apns", tokenPrefix: "b0b0", delayMs: 100 }]);
});
afterAll(() => system?.stop());
beforeEach(async () => {
  project = await system.project();
  await seed(system, project, audience, { prefix: "b0b0", topics: ["everyone"] });
  load = startLoad(system, project, await seed(system, project, 20, { prefix: "51" }));
});
afterEach(async () => {
  await system.database.heal();
  await load.stop().catch(() => {});
});
tellOnFailure(() => system);

/** A broadcast whose first pushes have arrived. */
async function broadcastUnderWay(): Promise<string> {
  const id = await sendSurely(project, { title: "To everyone", targets: ["everyone"] });
  const follow = system.simulators.follow();
  await eventually(async () => expect((await follow()).map((push) => payloadOf(push).notification_id)).toContain(id), {
    timeoutMs: 30_000,
  });
  return id;
}

async function allIsWell(broadcast: string): Promise<{ repeated: number }> {
  await system.ready();
  await load.stop();
  const promised = [{ id: broadcast, devices: audience }, ...load.promised];
  const report = await checkInvariants(system, project, promised, { timeoutMs: recoveryMs, opened: load.opened });
  const { repeated, deliveries, ...broken } = report;
  expect(broken).toEqual(nothingBroken);
  expect(deliveries).toBe(audience + load.promised.length);
  expect([...load.reads.keys()].filter((one) => one !== 200 && one !== 503)).toEqual([]);
  return { repeated };
}

const send = (title: string) =>
  project.call("POST /notifications", { body: { notification: { title, targets: ["topic:nobody"] } } });
const status = async (service: ServiceName, probe: string) =>
  (await request(system.services[service].url, `GET ${probe}`)).status;
/** Refused for now, with when to come again and why. */
const expectAway = (answer: Answered, about: string) => {
  expect(answer.status, about).toBe(503);
  expect(Number(answer.headers.get("retry-after")), about).toBeGreaterThan(0);
  expect(answer.headers.get("content-type"), about).toContain("application/problem+json");
  expect(answer.body.errors, about).toHaveLength(1);
};

test("with the database away sends and opens are taken, reads say so, and all is done when it is back", async () => {
  const broadcast = await broadcastUnderWay();
  await system.database.cut();
  for (const service of ["registry", "dispatch", "analytics"] as const)
    await eventually(async () => expect(await status(service, "/readyz")).toBe(503));
  for (const service of ["gateway", "registry", "dispatch", "analytics"] as const)
    expect(await status(service, "/livez")).toBe(200);
  expect(await status("gateway", "/readyz")).toBe(200);

  const before = load.promised.length;
  await eventually(() => expect(load.promised.length).toBeGreaterThan(before + 10), { timeoutMs: 30_000 });
  expect([...load.answers.keys()]).toEqual([202]);
  for (const route of ["GET /devices", "GET /topics", `GET /notifications/${broadcast}/deliveries`])
    expectAway(await project.call(route), route);
  const device = { device: { token: apnsToken(), platform: "ios" } };
  expectAway(await project.call("POST /devices", { body: device }), "POST /devices");

  await system.database.heal();
  expect(await allIsWell(broadcast)).toEqual({ repeated: 0 });
});

test("with the broker killed nothing is answered 202, and what was goes on when it is back", async () => {
  const broadcast = await broadcastUnderWay();
  await system.broker.kill();
  await eventually(async () => expect(await status("gateway", "/readyz")).toBe(503));
  const answers = await Promise.all(Array.from({ length: 20 }, (_, number) => send(`Into the void ${number}`)));
  for (const answer of answers) expectAway(answer, "POST /notifications");
  for (const route of ["GET /devices", `GET /notifications/${broadcast}`]) expectAway(await project.call(route), route);
  expect(await status("gateway", "/livez")).toBe(200);

  await system.broker.restart();
  expect(await allIsWell(broadcast)).toEqual({ repeated: 0 });
  expect([...load.answers.keys()]).toContain(503);
});

test("with the broker frozen nothing is answered 202, and what was goes on when it thaws", async () => {
  const broadcast = await broadcastUnderWay();
  await system.broker.freeze();
  await eventually(() => expect([...load.answers.keys()]).toContain(503), { timeoutMs: 30_000 });
  const taken = load.promised.length;
  expectAway(await project.call("GET /devices"), "GET /devices");
  expect(await status("gateway", "/livez")).toBe(200);
  expect(load.promised).toHaveLength(taken);

  await system.broker.thaw();
  expect(await allIsWell(broadcast)).toEqual({ repeated: 0 });
});
