import { lastMessage, publish } from "@herald/bus";
import { NotificationAcceptedV1, newNotificationId, SendV1 } from "@herald/contracts";
import { eventually } from "@herald/testing";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type DispatchTest, day, device, devices, startDispatchTest } from "./dispatch-fixture.ts";

let dispatch: DispatchTest;
beforeAll(async () => {
  dispatch = await startDispatchTest();
});
afterAll(() => dispatch.stop());

test("a command that is delivered three times creates one notification", async () => {
  const { project, bus, now, expansion, partition, final, simulators } = dispatch;
  const projectId = await project();
  const notificationId = newNotificationId(now());
  const data: SendV1 = {
    projectId,
    notificationId,
    content: { title: "Hello", targets: [`dev_${notificationId.slice(4)}`] },
    acceptedAt: now().toISOString(),
    expiresAt: new Date(now().getTime() + day).toISOString(),
  };
  await publish(bus, SendV1, data, { id: `${notificationId}/a` });
  await expansion(projectId, notificationId);
  await publish(bus, SendV1, data, { id: `${notificationId}/b` });
  const one = device();
  await partition(projectId, notificationId, [[one]], { lane: "direct" });
  const first = await final(projectId, notificationId);
  await publish(bus, SendV1, data, { id: `${notificationId}/c` });
  await eventually(async () => {
    expect(await lastMessage(bus, "PUSH_CMD", SendV1.subject(data), SendV1)).toBeUndefined();
  });
  expect(await final(projectId, notificationId)).toEqual(first);
  expect(simulators.pushes({ token: one.token })).toHaveLength(1);
  expect(await expansion(projectId, notificationId)).toMatchObject({ lane: "direct" });
});

test("a scheduled one waits for its time, on the broker's clock", async () => {
  const { project, send, now, partition, final, lastEvent } = dispatch;
  const projectId = await project();
  const sendAt = new Date(now().getTime() + 2_000).toISOString();
  const id = await send(projectId, { sendAt });
  await eventually(async () =>
    expect(await lastEvent(projectId, NotificationAcceptedV1)).toMatchObject({ send_at: sendAt }),
  );
  await dispatch.expansion(projectId, id);
  expect(now().getTime()).toBeGreaterThanOrEqual(Date.parse(sendAt));
  await partition(projectId, id, [devices(1)]);
  expect(await final(projectId, id)).toMatchObject({ status: "completed", counts: { accepted: 1 } });
});

test("the accepted event names the topics among its targets, each once, and without any where there are none", async () => {
  const { project, send, lastEvent } = dispatch;
  const projectId = await project();
  const targets = ["topic:news", "sport", "news", "all", "metadata:plan=pro", "condition:'muted' in topics"];
  const id = await send(projectId, {}, { targets });
  await eventually(async () => {
    const event = await lastEvent(projectId, NotificationAcceptedV1);
    expect(event).toMatchObject({ notification_id: id, topics: ["news", "sport"] });
  });
  const other = await send(projectId, {}, { targets: ["all"] });
  await eventually(async () => {
    const event = await lastEvent(projectId, NotificationAcceptedV1);
    expect(event).toMatchObject({ notification_id: other });
    expect(event).not.toHaveProperty("topics");
  });
});

test("a scheduled one whose wake-up was lost is found by the sweep", async () => {
  const { project, send, get, now, partition, final, pass } = dispatch;
  const projectId = await project();
  const id = await send(projectId, {
    sendAt: new Date(now().getTime() + day).toISOString(),
    expiresAt: new Date(now().getTime() + 2 * day).toISOString(),
  });
  await eventually(async () => expect(await get(projectId, id)).toMatchObject({ status: "scheduled" }));
  // The broker's clock does not advance, so it does not publish the scheduled message.
  pass(day + 1_000);
  await partition(projectId, id, [devices(1)]);
  expect(await final(projectId, id)).toMatchObject({ status: "completed" });
});

test("a notification that is expired on arrival is expanded, so that each device is counted, and not pushed", async () => {
  const { project, send, now, partition, final, simulators } = dispatch;
  const projectId = await project();
  const id = await send(projectId, { expiresAt: now().toISOString() });
  const one = device();
  await partition(projectId, id, [[one]]);
  expect(await final(projectId, id)).toMatchObject({ status: "expired", counts: { devices: 1, expired: 1 } });
  expect(simulators.pushes({ token: one.token })).toEqual([]);
});

test("a notification whose targets match no device is completed", async () => {
  const { project, send, partition, final } = dispatch;
  const projectId = await project();
  const id = await send(projectId);
  await partition(projectId, id, []);
  expect(await final(projectId, id)).toMatchObject({ status: "completed", counts: { devices: 0 }, failures: {} });
});

test("any keys that an app chooses arrive unchanged", async () => {
  const { project, send, partition, final, simulators } = dispatch;
  const projectId = await project();
  const data = { "a.b": "1", $where: "2", "n\u0000ul": "3", constructor: "4" };
  const id = await send(projectId, {}, { data, ios: { "x.y": { $set: [null, 1.5] } } });
  const one = device();
  await partition(projectId, id, [[one]]);
  expect(await final(projectId, id)).toMatchObject({ data, counts: { accepted: 1 } });
  expect(simulators.pushes({ token: one.token })).toMatchObject([{ payload: { data, "x.y": { $set: [null, 1.5] } } }]);
});
