import { DeliveryAcceptedV1, NotificationAcceptedV1, NotificationCompletedV1 } from "@herald/contracts";
import { eventually } from "@herald/testing";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type DispatchTest, devices, startDispatchTest } from "./dispatch-fixture.ts";

let dispatch: DispatchTest;
beforeAll(async () => {
  dispatch = await startDispatchTest();
});
afterAll(() => dispatch.stop());

test("a notification goes from the command to every device and to its final counts", async () => {
  const { project, send, expansion, partition, final, simulators, rows, lastEvent, deliveries } = dispatch;
  const projectId = await project();
  const id = await send(projectId, {}, { targets: ["topic:news"], body: "World" });

  expect(await expansion(projectId, id)).toMatchObject({
    page: 0,
    fromBucket: 0,
    lane: "broadcast",
    targets: ["topic:news"],
  });
  expect(await eventually(() => dispatch.get(projectId, id))).toMatchObject({
    status: expect.stringMatching(/^(?:accepted|sending)$/), // it may wait for its turn
    counts: { devices: 0 },
  });

  const all = devices(120);
  await partition(projectId, id, [all.slice(0, 100), all.slice(100), []]);
  const notification = await final(projectId, id);
  expect(notification).toMatchObject({ status: "completed", counts: { devices: 120, accepted: 120 }, failures: {} });

  const arrived = new Map(simulators.pushes({ status: 200 }).map((push) => [push.token, push]));
  expect([...arrived.keys()].sort()).toEqual(all.map(({ token }) => token).sort());
  const [first] = arrived.values();
  expect(first?.payload).toMatchObject({
    aps: { alert: { title: "Hello", body: "World" } },
    notification_id: id,
    project_id: projectId,
    token: expect.stringMatching(/^v2\.o1\.dev_[0-9a-z]{26}\.i\./),
  });
  expect(first?.headers).toMatchObject({ "apns-topic": "com.example.app", "apns-collapse-id": id });

  expect(await rows(id)).toMatchObject([
    { state: "final", tally: { devices: 100, accepted: 100 } },
    { state: "final", tally: { devices: 20, accepted: 20 } },
    { state: "final", tally: { devices: 0 } },
  ]);
  const [delivery] = await deliveries(projectId, id);
  expect(delivery).toMatchObject({ device_id: all[0]?.id, status: "accepted", attempts: 1, possible_repeat: false });
  expect(delivery?.provider_id).toBe(arrived.get(all[0]?.token ?? "")?.headers["apns-id"]);

  await eventually(async () => {
    expect(await lastEvent(projectId, NotificationAcceptedV1)).toMatchObject({ notification_id: id });
    expect(await lastEvent(projectId, DeliveryAcceptedV1)).toMatchObject({ notification_id: id });
    expect(await lastEvent(projectId, NotificationCompletedV1)).toMatchObject({
      notification_id: id,
      counts: { devices: 120, accepted: 120 },
    });
  });
});
