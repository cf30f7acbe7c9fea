import { newDeviceId } from "@herald/contracts";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type GatewayTest, startGatewayTest } from "./gateway-fixture.ts";
import { createWorld } from "./new-world.ts";

let system: GatewayTest;
beforeAll(async () => {
  system = await startGatewayTest();
});
afterAll(() => system.stop());

test("the delivery trace joins what dispatch, registry and analytics know, as data and in sentences", async () => {
  const { project, notification, device } = await createWorld(system, ["notification", "device"]);
  const at = new Date().toISOString();
  system.peers.opens.set(`${notification.id}/${device.id}`, at);
  const path = `GET /api/v1/notifications/${notification.id}/devices/${device.id}`;
  const { status, body } = await system.call(path, { token: project.token });
  expect(status).toBe(200);
  expect(body.data).toEqual({
    notification: { id: notification.id, status: "accepted" },
    device: { id: device.id, platform: "ios", status: "active" },
    matched: "all",
    status: "accepted",
    attempts: [expect.objectContaining({ attempt: 1, outcome: "accepted" })],
    opened_at: at,
    explanation: [
      `The notification was accepted at ${notification.created_at}.`,
      "Its target `all` names the device.",
      expect.stringMatching(/^Sent at .* to APNs, which accepted it\.$/),
      `Opened at ${at}.`,
    ],
  });
});

test("a device that got nothing has a delivery trace too; a device of no or another project has none", async () => {
  const { project, notification, device } = await createWorld(system, ["notification", "device"]);
  const { token } = project;
  await system.call(`PATCH /api/v1/devices/${device.id}`, { token, body: { device: { status: "inactive" } } });
  const traceOf = (id: string) => system.call(`GET /api/v1/notifications/${notification.id}/devices/${id}`, { token });
  expect((await traceOf(device.id)).body.data).toMatchObject({ status: "not_addressed", attempts: [] });
  expect((await traceOf(newDeviceId(new Date()))).status).toBe(404);
  expect((await traceOf("dev_1")).status).toBe(404);
  for (const peer of ["registry", "dispatch", "analytics"] as const) {
    system.peers.away(peer);
    expect((await traceOf(device.id)).status, peer).toBe(503);
  }
  system.peers.back();
});
