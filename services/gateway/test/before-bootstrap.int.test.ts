import { type Bus, closeBus, connectBus, ensureStreams } from "@herald/bus";
import { newOperatorToken, newSessionSecret, newSignInCode } from "@herald/contracts";
import { createLogger } from "@herald/kit";
import { type Broker, eventually, operateBroker, type Request, startBroker } from "@herald/testing";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createApp } from "../src/app.ts";
import { adminToken, callAt, configOf } from "./gateway-fixture.ts";

let broker: Broker;
let bus: Bus;
let app: ReturnType<typeof createApp>;
beforeEach(async () => {
  broker = await startBroker();
  const log = createLogger({ service: "test", level: "silent" });
  bus = await connectBus({ url: broker.url, name: "bootstrap-test", log });
  app = createApp(configOf(broker.url, broker.loginOf("gateway")));
});
afterEach(async () => {
  await app.stop();
  await closeBus(bus);
  await broker.stop();
});

const bootstrap = () => ensureStreams(bus, { replicas: 1, sizeFactor: 0.01 });
const call = (route: string, one?: Request) => callAt(app.address(), route, one);
const failing = async (): Promise<Record<string, string>> => {
  const { status, body } = await call("GET /readyz");
  const checks = (body.failing ?? []) as { check: string; reason: string }[];
  expect(status).toBe(checks.length === 0 ? 200 : 503);
  return Object.fromEntries(checks.map(({ check, reason }) => [check, reason]));
};

test("a gateway without the bootstrap step says that it waits for it, and is ready after it ran, also twice at once", async () => {
  await app.start();
  await eventually(async () => expect(Object.keys(await failing())).toEqual(["tokens", "projects", "operators"]));
  expect((await failing()).operators).toContain("the bootstrap step creates their buckets");
  const [one, other] = await Promise.all([bootstrap(), bootstrap()]);
  expect([...one.problems, ...other.problems]).toEqual([]);
  await eventually(async () => expect(await failing()).toEqual({}), { timeoutMs: 20_000 });
  expect((await call("POST /admin/v1/sessions", { token: adminToken })).status).toBe(201);
});

test("on a broker that an earlier version has set up, operators wait for the newer buckets, and apps do not", async () => {
  await bootstrap();
  const hands = await operateBroker(broker);
  for (const bucket of ["push_operators", "push_sessions", "push_status"])
    await hands.ask(`$JS.API.STREAM.DELETE.KV_${bucket}`, "");
  await hands.close();
  await app.start();
  await eventually(async () => expect(Object.keys(await failing())).toEqual(["operators"]));

  for (const one of [
    { token: adminToken },
    { token: newOperatorToken() },
    { headers: { cookie: `herald_session=${newSessionSecret()}` }, route: "GET /admin/v1/audit" },
    { body: { code: newSignInCode() } },
  ]) {
    const { route = "POST /admin/v1/sessions", ...request } = one as Request & { route?: string };
    const { status, headers, problem } = await call(route, request);
    expect([status, problem.errors[0]]).toEqual([503, expect.stringMatching(/\w/)]);
    expect(Number(headers.get("retry-after"))).toBeGreaterThan(0);
  }
  // For apps, the token bucket exists, so an unknown token is refused.
  expect((await call("GET /api/v1/devices", { token: "hpt_unknown" })).status).toBe(401);

  expect(await bootstrap()).toMatchObject({
    created: ["KV_push_operators", "KV_push_sessions", "KV_push_status"],
    problems: [],
  });
  await eventually(async () => expect(await failing()).toEqual({}), { timeoutMs: 20_000 });
  expect((await call("POST /admin/v1/sessions", { token: adminToken })).status).toBe(201);
  expect((await call("POST /admin/v1/sessions", { token: newOperatorToken() })).status).toBe(401);
});
