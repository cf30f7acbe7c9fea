import { defineHandler, publish } from "@herald/bus";
import {
  DeliverBatchV1,
  DeliveryFailedV1,
  deviceRequests,
  ExpandedV1,
  ExpandV1,
  newNotificationId,
  pushTokenHash,
} from "@herald/contracts";
import { ConfigError, readConfig } from "@herald/kit";
import { eventually, faultyProxy } from "@herald/testing";
import { describe, expect, test } from "vitest";
import { RegistryConfig } from "../src/config.ts";
import { apnsToken, failure, useRegistry } from "./registry-fixture.ts";

const registry = useRegistry();

const readiness = async (address: string) => {
  const response = await fetch(`${address}/readyz`);
  return { status: response.status, body: (await response.json()) as { failing?: { check: string }[] } };
};

describe("the database is unavailable", () => {
  test("requests get that error, messages wait, and both continue when it is back", async () => {
    const projectId = await registry.project();
    const { device } = await registry.register(projectId, apnsToken("a"), { topics: ["news"] });
    const delivered: string[] = [];
    const expanded: string[] = [];
    await registry.handle(
      defineHandler({
        durable: "dispatch-broadcast-ios",
        message: DeliverBatchV1,
        handle: async ({ data }) => void delivered.push(...data.devices.map(({ id }) => id)),
      }),
      defineHandler({
        durable: "dispatch-complete-expansion",
        message: ExpandedV1,
        handle: async ({ data }) => void expanded.push(data.notificationId),
      }),
    );

    await registry.database.cut();
    expect(await failure(registry.ask(deviceRequests.get, { projectId, deviceId: device.id }))).toMatchObject({
      code: "database-unavailable",
    });
    expect(await failure(registry.register(projectId, apnsToken("b")))).toMatchObject({ code: "database-unavailable" });
    const { status, body } = await readiness(registry.app.address());
    expect(status).toBe(503);
    expect(body.failing?.map(({ check }) => check)).toEqual(["database"]);
    expect((await fetch(`${registry.app.address()}/livez`)).status).toBe(200);

    const notificationId = newNotificationId(new Date());
    const expiresAt = new Date(Date.now() + 3_600_000).toISOString();
    const expand = {
      projectId,
      notificationId,
      page: 0,
      expansion: { n: 0 },
      fromBucket: 0,
      targets: ["news"],
      lane: "broadcast" as const,
      expiresAt,
    };
    await publish(registry.bus, ExpandV1, expand, { id: "expand" });
    const at = new Date(Date.now() + 60_000).toISOString();
    const failed = {
      project_id: projectId,
      notification_id: notificationId,
      batch_id: "b",
      platform: "ios" as const,
      failures: [],
      unregistered: [{ device_id: device.id, token_hash: pushTokenHash(device.token), at }],
      at,
    };

    await registry.database.heal();
    // Two consumers: either may be first.
    await eventually(
      () => expect({ expanded, delivered }).toEqual({ expanded: [notificationId], delivered: [device.id] }),
      {
        timeoutMs: 20_000,
      },
    );
    await eventually(() => registry.ready(registry.app.address()));

    await registry.database.cut();
    await publish(registry.bus, DeliveryFailedV1, failed, { id: "failed" });
    await registry.database.heal();
    await eventually(
      async () =>
        expect(await registry.ask(deviceRequests.get, { projectId, deviceId: device.id })).toMatchObject({
          status: "inactive",
        }),
      { timeoutMs: 20_000 },
    );
  });

  test("while registry starts: it is alive, not ready, and works as soon as the database is there", async () => {
    await registry.database.cut();
    const second = registry.newApp();
    const starting = second.start();
    await eventually(async () => expect((await fetch(`${second.address()}/livez`)).status).toBe(200));
    expect((await readiness(second.address())).status).toBe(503);
    await registry.database.heal();
    await starting;
    await eventually(() => registry.ready(second.address()), { timeoutMs: 20_000 });
    await second.stop();
  });
});

describe("the bus is unavailable", () => {
  test("while registry starts: it is alive, not ready, and works as soon as the bus is there", async () => {
    const bus = await faultyProxy(registry.broker.url);
    await bus.cut();
    const app = registry.newApp(bus.url);
    const starting = app.start();
    await eventually(async () => expect((await fetch(`${app.address()}/livez`)).status).toBe(200));
    expect((await readiness(app.address())).body.failing?.map(({ check }) => check)).toContain("bus");
    await bus.heal();
    await starting;
    await eventually(() => registry.ready(app.address()), { timeoutMs: 20_000 });

    await bus.cut();
    await eventually(async () => expect((await readiness(app.address())).status).toBe(503));
    await bus.heal();
    await eventually(() => registry.ready(app.address()), { timeoutMs: 20_000 });
    await app.stop();
    await bus.stop();
  });
});

test("a stop ends the wait for the bus or the database", async () => {
  const bus = await faultyProxy(registry.broker.url);
  await bus.cut();
  const busless = registry.newApp(bus.url);
  void busless.start();
  await eventually(() => expect(busless.address()).not.toBe(""));
  expect(await busless.stop()).toBe(true);
  await expect(fetch(`${busless.address()}/livez`)).rejects.toThrow();
  await bus.stop();

  await registry.database.cut();
  const starting = registry.newApp();
  const started = starting.start();
  await eventually(async () => {
    const { failing } = (await readiness(starting.address())).body;
    expect(failing?.map(({ check }) => check)).not.toContain("bus");
  });
  expect(await starting.stop()).toBe(true);
  await started;
  await registry.database.heal();
});

test("a wrong configuration is reported at once, with all problems", () => {
  const env = { HERALD_NATS_URL: "http://x", HERALD_PORT: "99999", HERALD_DATABASE_PREFX: "x" };
  let problems: readonly string[] = [];
  try {
    readConfig(RegistryConfig, env);
  } catch (error) {
    if (error instanceof ConfigError) problems = error.problems;
  }
  for (const name of ["HERALD_NATS_URL", "HERALD_MONGO_URL", "HERALD_PORT", "HERALD_DATABASE_PREFX"])
    expect(
      problems.some((problem) => problem.startsWith(`${name}:`)),
      name,
    ).toBe(true);
});
