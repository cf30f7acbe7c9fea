import { newDeviceId } from "@herald/contracts";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type GatewayTest, startGatewayTest } from "./gateway-fixture.ts";
import { createWorld } from "./new-world.ts";

let system: GatewayTest;
beforeAll(async () => {
  system = await startGatewayTest();
});
afterAll(() => system.stop());

test("the story of a device is what dispatch, registry and analytics know, in data and in words", async () => {
  const { project, notification, device } = await createWorld(system);
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
    story: [
      `The notification was accepted at ${notification.created_at}.`,
      "Its target `all` names the device.",
      expect.stringMatching(/^Sent at .* to APNs, which accepted it\.$/),
      `Opened at ${at}.`,
    ],
  });
});

test("a device that got nothing has a story too; one that is not the project's has none", async () => {
  const { project, notification, device } = await createWorld(system);
  const { token } = project;
  await system.call(`PATCH /api/v1/devices/${device.id}`, { token, body: { device: { status: "inactive" } } });
  const story = (id: string) => system.call(`GET /api/v1/notifications/${notification.id}/devices/${id}`, { token });
  expect((await story(device.id)).body.data).toMatchObject({ status: "not_addressed", attempts: [] });
  expect((await story(newDeviceId(new Date()))).status).toBe(404);
  expect((await story("dev_1")).status).toBe(404);
  for (const peer of ["registry", "dispatch", "analytics"] as const) {
    system.peers.away(peer);
    expect((await story(device.id)).status, peer).toBe(503);
  }
  system.peers.back();
});
