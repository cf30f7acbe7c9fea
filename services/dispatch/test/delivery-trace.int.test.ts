import { sendRequest } from "@herald/bus";
import {
  type DeviceId,
  deliveryRequests,
  type NotificationId,
  newDeviceId,
  newNotificationId,
  type ProjectId,
} from "@herald/contracts";
import { eventually } from "@herald/testing";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { DeliveryDocument } from "../src/stores/delivery-document.ts";
import { type DispatchTest, devices, startDispatchTest } from "./dispatch-fixture.ts";

let dispatch: DispatchTest;
beforeAll(async () => {
  dispatch = await startDispatchTest();
});
afterAll(() => dispatch.stop());

const getTrace = (projectId: ProjectId, notificationId: NotificationId, deviceId: DeviceId) =>
  sendRequest(dispatch.bus, deliveryRequests.trace, { projectId, notificationId, deviceId });

test("the trace of a device has an attempt from every row that contains it", async () => {
  const { project, send, partition, simulators, final, pass } = dispatch;
  const projectId = await project();
  const id = await send(projectId);
  simulators.script([
    { provider: "apns", tokenPrefix: "500", status: 500, times: 1 },
    { provider: "apns", tokenPrefix: "410", status: 410 },
  ]);
  const good = devices(5);
  const [gone] = devices(1, "410");
  const [slow] = devices(1, "500");
  if (!gone || !slow || !good[0]) throw new Error("no devices");
  const byId = [...good, gone, slow].sort((one, other) => (one.id < other.id ? -1 : 1));
  await partition(projectId, id, [byId]);

  await eventually(async () => {
    const trace = await getTrace(projectId, id, slow.id);
    expect(trace).toMatchObject({
      expanded: true,
      delivery: { device_id: slow.id, status: "pending", attempts: 1 },
      attempts: [{ attempt: 1, outcome: "deferred", possible_repeat: false }],
      nextAttemptAt: expect.any(String),
    });
    expect(Date.parse(trace.nextAttemptAt ?? "")).toBeGreaterThan(Date.parse(trace.attempts[0]?.at ?? ""));
  });
  expect(await getTrace(projectId, id, gone.id)).toMatchObject({
    delivery: { status: "failed" },
    attempts: [{ attempt: 1, outcome: "failed", provider_reason: expect.any(String), provider_id: expect.any(String) }],
  });
  expect((await getTrace(projectId, id, good[0].id)).attempts).toMatchObject([{ attempt: 1, outcome: "accepted" }]);

  pass(120_000);
  await final(projectId, id);
  const trace = await getTrace(projectId, id, slow.id);
  expect(trace.attempts.map(({ attempt, outcome }) => [attempt, outcome])).toEqual([
    [1, "deferred"],
    [2, "accepted"],
  ]);
  expect(trace.nextAttemptAt).toBeUndefined();
  expect(trace.delivery).toMatchObject({ status: "accepted", attempts: 2 });
});

test("a device that waits is in its batch before what it waits in has a row of its own", async () => {
  const { project, send, partition, simulators, database } = dispatch;
  const projectId = await project();
  const id = await send(projectId);
  simulators.script([{ provider: "apns", tokenPrefix: "500", status: 500 }]);
  const [slow] = devices(1, "500");
  if (!slow) throw new Error("no device");
  await partition(projectId, id, [[slow]]);
  const rows = database.client.db(database.name).collection<DeliveryDocument>("deliveries");
  const child = await eventually(async () => {
    const found = await rows.findOne({ notificationId: id, generation: 2 });
    // Dispatch updates the parent after it stores the child. That update must not undo the writes below.
    const parent = await rows.findOne({ notificationId: id, generation: 1 });
    if (!found || parent?.state !== "final") throw new Error("not yet");
    return found;
  });
  // The state after a crash between these two writes.
  const far = new Date(Date.now() + 3_600_000);
  const { devices: waiting = [] } = child;
  await rows.deleteOne({ _id: child._id });
  await rows.updateOne(
    { notificationId: id, generation: 1 },
    { $set: { state: "settled", child: { devices: waiting, dueAt: far, notBefore: far, paused: false }, dueAt: far } },
  );
  expect(await getTrace(projectId, id, slow.id)).toMatchObject({
    delivery: { device_id: slow.id, status: "pending", attempts: 1, possible_repeat: false },
    attempts: [{ attempt: 1, outcome: "deferred" }],
    nextAttemptAt: far.toISOString(),
  });
});

test("a device in no batch has none, and another project's notification is none", async () => {
  const { project, send } = dispatch;
  const projectId = await project();
  const id = await send(projectId);
  const deviceId = newDeviceId(new Date());
  expect(await getTrace(projectId, id, deviceId)).toMatchObject({
    notification: { id },
    expanded: false,
    attempts: [],
  });
  const unknown = newNotificationId(new Date());
  await expect(getTrace(projectId, unknown, deviceId)).rejects.toMatchObject({ code: "notification-not-found" });
  await expect(getTrace(await project(), id, deviceId)).rejects.toMatchObject({ code: "notification-not-found" });
});
