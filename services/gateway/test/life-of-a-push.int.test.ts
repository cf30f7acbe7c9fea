import { consume, defineHandler } from "@herald/bus";
import { OpenGroupV1, type OpenGroupV1 as Opens, type SendV1 as Send, SendV1 } from "@herald/contracts";
import { eventually } from "@herald/testing";
import { afterAll, beforeAll, expect, test } from "vitest";
import { apnsToken, type GatewayTest, startGatewayTest } from "./gateway-fixture.ts";
import { openTokens } from "./new-world.ts";

let system: GatewayTest;
beforeAll(async () => {
  system = await startGatewayTest();
});
afterAll(() => system.stop());

test("a project, a device, a send and its open go through to the bus", async () => {
  const { call } = system;
  const sent: Send[] = [];
  const opened: Opens[] = [];
  const consuming = await consume(system.bus, [
    defineHandler({ durable: "dispatch-start", message: SendV1, handle: async ({ data }) => void sent.push(data) }),
    defineHandler({
      durable: "analytics-open-groups",
      message: OpenGroupV1,
      handle: async ({ data }) => void opened.push(data),
    }),
  ]);
  await eventually(() => expect(consuming.ready()).toBe(true));

  const project = await system.project();
  const registered = await call("POST /api/v1/devices", {
    token: project.token,
    body: { device: { token: apnsToken(), platform: "ios", topics: ["news"] } },
  });
  expect(registered.status).toBe(201);
  const device = registered.body.data;

  const answer = await call("POST /api/v1/notifications", {
    token: project.token,
    body: { notification: { title: "Hello", targets: ["topic:news"] } },
  });
  expect(answer.status).toBe(202);
  expect(answer.body.data).toMatchObject({ status: "accepted", title: "Hello", targets: ["topic:news"] });
  const command = await eventually(() => {
    const [first] = sent;
    if (first === undefined) throw new Error("nothing was sent");
    return first;
  });
  expect(command).toMatchObject({ projectId: project.id, notificationId: answer.body.data.id });

  const { id } = answer.body.data;
  const token = openTokens.sign(
    { projectId: project.id, notificationId: id, deviceId: device.id, platform: "ios" },
    new Date(),
  );
  const open = await call(`PUT /api/v1/notifications/${id}/open`, { body: { project_id: project.id, token } });
  expect(open.status).toBe(204);
  await eventually(() => expect(opened).toHaveLength(1));
  expect(opened[0]).toMatchObject({
    projectId: project.id,
    opens: [{ notificationId: id, deviceId: device.id, platform: "ios" }],
  });
  await consuming.stop(2_000);
});
