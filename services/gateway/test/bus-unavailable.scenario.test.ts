import { setTimeout as delay } from "node:timers/promises";
import { consume, defineHandler } from "@herald/bus";
import { SendV1, secretHash } from "@herald/contracts";
import { createLogger } from "@herald/kit";
import { eventually } from "@herald/testing";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createApp } from "../src/app.ts";
import {
  type Answered,
  adminToken,
  callAt,
  configOf,
  type GatewayTest,
  startGatewayTest,
  writtenDocuments,
} from "./gateway-fixture.ts";
import { createWorld } from "./new-world.ts";
import type { World } from "./route-case.ts";

let system: GatewayTest;
let world: World;
beforeAll(async () => {
  system = await startGatewayTest({ documents: await writtenDocuments() });
  world = await createWorld(system);
});
afterAll(() => system.stop());

const send = () =>
  system.call("POST /api/v1/notifications", {
    token: world.project.token,
    body: { notification: { title: "Hello", targets: ["all"] } },
  });
const open = () =>
  system.call(`PUT /api/v1/notifications/${world.notification.id}/open`, {
    body: { project_id: world.project.id, token: world.openToken },
  });

const isUnavailable = (answer: Answered) => {
  expect(answer.status).toBe(503);
  expect(Number(answer.headers.get("retry-after"))).toBeGreaterThan(0);
  expect(answer.problem.errors[0]).toBeTruthy();
};

describe("while the bus is unavailable", () => {
  test("nothing is accepted that could be lost, and everything is accepted again when it is back", async () => {
    await system.proxy.cut();
    await eventually(async () => expect((await system.call("GET /readyz")).status).toBe(503));
    expect((await system.call("GET /livez")).status).toBe(200);
    isUnavailable(await send());
    isUnavailable(await open());
    isUnavailable(await system.call("GET /api/v1/devices", { token: world.project.token }));
    isUnavailable(await system.call(`GET /api/v1/devices/${world.device.id}`, { token: world.credential }));
    isUnavailable(await system.call("GET /admin/v1/projects", { token: adminToken }));
    // Requests that need no bus are answered: known tokens, their scopes, invalid input, forged opens, the document.
    const bad = { notification: { title: "Hello", targets: [] } };
    expect((await system.call("POST /api/v1/notifications", { token: world.project.token, body: bad })).status).toBe(
      422,
    );
    expect((await system.call("GET /api/v1/devices")).status).toBe(401);
    const forged = { project_id: world.project.id, token: "forged" };
    expect(
      (await system.call(`PUT /api/v1/notifications/${world.notification.id}/open`, { body: forged })).status,
    ).toBe(403);
    expect((await system.call("GET /openapi.json")).status).toBe(200);

    await system.proxy.heal();
    await system.ready();
    expect((await send()).status).toBe(202);
    expect((await open()).status).toBe(204);
    expect((await system.call("GET /api/v1/devices", { token: world.project.token })).status).toBe(200);
  });

  test("no 202 is given for what is not stored: every accepted send is in the stream", async () => {
    const accepted = new Set<string>();
    let running = true;
    const load = Promise.all(
      Array.from({ length: 20 }, async () => {
        while (running) {
          const answer = await send();
          expect([202, 503]).toContain(answer.status);
          if (answer.status === 202) accepted.add(answer.body.data.id);
          // Refusals cost little: asking without a pause would take the CPU that the gateway needs to connect again.
          else await delay(20);
        }
      }),
    );
    for (let round = 0; round < 3; round++) {
      await eventually(() => expect(accepted.size).toBeGreaterThan(round * 50));
      await system.proxy.cut();
      await system.proxy.heal();
      await system.ready();
    }
    running = false;
    await load;
    const stored = new Set<string>();
    const handler = defineHandler({
      durable: "dispatch-start",
      message: SendV1,
      handle: async ({ data }) => void stored.add(data.notificationId),
    });
    const consuming = await consume(system.bus, [handler]);
    await eventually(() => expect(consuming.ready()).toBe(true));
    await eventually(() => expect([...accepted].filter((id) => !stored.has(id))).toEqual([]));
    await consuming.stop(2_000);
  });

  test("tokens that were revoked meanwhile are refused when it is back", async () => {
    // The previous test may have cut the connection just now, unnoticed by the gateway.
    const other = await eventually(() => createWorld(system));
    await system.proxy.cut();
    // "Ready" proves nothing until the gateway has noticed the cut.
    await eventually(async () => expect((await system.call("GET /readyz")).status).toBe(503));
    await system.peers.tokenBucket.delete(secretHash(other.project.token));
    await system.proxy.heal();
    await system.ready();
    expect((await system.call("GET /api/v1/devices", { token: other.project.token })).status).toBe(401);
  });
});

describe("a broker that freezes", () => {
  test("is answered with 503 in time, and no caller waits longer than one attempt", async () => {
    await system.broker.freeze();
    try {
      const answers = await Promise.all(Array.from({ length: 300 }, send));
      for (const answer of answers) isUnavailable(answer);
    } finally {
      await system.broker.thaw();
    }
    await system.ready();
    await eventually(async () => expect((await send()).status).toBe(202));
  });
});

describe("a gateway that starts before its broker", () => {
  test("is alive, not ready, and becomes ready by itself", async () => {
    await system.proxy.cut();
    const log = createLogger({ service: "test", level: "silent" });
    const app = createApp(configOf(system.proxy.url), { log });
    await app.start();
    try {
      const call = (route: string, token?: string) => callAt(app.address(), route, { token });
      expect((await call("GET /livez")).status).toBe(200);
      const probe = await call("GET /readyz");
      expect(probe.status).toBe(503);
      const checks = probe.body.failing.map(({ check }: { check: string }) => check);
      expect(checks).toEqual(["bus", "tokens", "projects", "operators"]);
      isUnavailable(await call("GET /api/v1/devices", world.project.token));
      expect((await call("GET /api/v1/devices", "nonsense")).status).toBe(401);
      await system.proxy.heal();
      await eventually(async () => expect((await call("GET /readyz")).status).toBe(200));
      expect((await call("GET /api/v1/devices", world.project.token)).status).toBe(200);
    } finally {
      await app.stop();
    }
  });
});

describe("with one service unavailable", () => {
  test("only requests that need it are a 503", async () => {
    const { id } = world.notification;
    const { token } = world.project;
    const get = `GET /api/v1/notifications/${id}`;
    system.peers.away("analytics");
    try {
      isUnavailable(await system.call(get, { token }));
      expect((await system.call(`DELETE /api/v1/notifications/${id}`, { token })).body.data.status).toBe("cancelled");
      expect((await system.call("GET /api/v1/devices", { token })).status).toBe(200);
      expect((await send()).status).toBe(202);
    } finally {
      system.peers.back();
    }
    expect((await system.call(get, { token })).body.data.counts.opened).toBe(0);
    system.peers.opens.set(`${id}/${world.device.id}`, new Date().toISOString());
    expect((await system.call(get, { token })).body.data.counts.opened).toBe(1);
  });
});
