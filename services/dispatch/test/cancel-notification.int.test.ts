import { publish } from "@herald/bus";
import { ExpandedV1, NotificationCancelledV1, newNotificationId, SendV1 } from "@herald/contracts";
import { eventually } from "@herald/testing";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { type DispatchTest, day, device, devices, startDispatchTest } from "./dispatch-fixture.ts";

let dispatch: DispatchTest;
beforeAll(async () => {
  // One chunk at a time, so that the test can cancel between two chunks.
  dispatch = await startDispatchTest({ HERALD_DISPATCH_IN_FLIGHT: "50" });
});
afterAll(() => dispatch.stop());
beforeEach(() => dispatch.simulators.clear());

test("in the middle: what is sent counts, what is not is cancelled, and no later chunk begins", async () => {
  const { project, send, partition, cancel, final, simulators, lastEvent } = dispatch;
  const projectId = await project();
  const id = await send(projectId);
  simulators.script([{ provider: "apns", status: 200, delayMs: 500 }]);
  await partition(projectId, id, [devices(200), devices(200)]);
  await eventually(() => expect(simulators.stats().apns?.total).toBeGreaterThan(0));

  const answer = await cancel(projectId, id);
  expect(answer.status).toBe("cancelled");
  const begun = simulators.stats().apns?.total ?? 0;

  const { status, counts } = await final(projectId, id);
  expect(status).toBe("cancelled");
  expect(counts).toMatchObject({ devices: 400, failed: 0, expired: 0 });
  expect(counts.accepted + counts.cancelled).toBe(400);
  expect(counts.cancelled).toBeGreaterThan(0);
  // One chunk may have been in flight when the cancel responded.
  expect(counts.accepted).toBeLessThanOrEqual(begun + 50);
  expect(simulators.pushes({ status: 200 })).toHaveLength(counts.accepted);
  await eventually(async () =>
    expect(await lastEvent(projectId, NotificationCancelledV1)).toMatchObject({
      notification_id: id,
      counts: { devices: 400 },
    }),
  );
  await expect(cancel(projectId, id)).rejects.toMatchObject({ code: "notification-final" });
});

test("what waits is cancelled at once, and twice is the same", async () => {
  const { project, send, partition, cancel, final, rows, simulators } = dispatch;
  const projectId = await project();
  const id = await send(projectId);
  simulators.script([{ provider: "apns", status: 503, headers: { "retry-after": "600" } }]);
  await partition(projectId, id, [[device()]], { of: 2 });
  await eventually(async () => expect(await rows(id)).toMatchObject([{}, { state: "waiting" }]));
  const { status, counts } = await cancel(projectId, id);
  expect(status).toBe("cancelled");
  // The cancel makes the waiting row due, so it may be settled before the response is made.
  expect(counts.pending + counts.cancelled).toBe(1);
  await cancel(projectId, id);
  await partition(projectId, id, [[device(), device()]], { from: 1, of: 2 });
  expect(await final(projectId, id)).toMatchObject({ status: "cancelled", counts: { devices: 3, cancelled: 3 } });
  expect(simulators.stats().apns?.total).toBe(1);
});

test("a scheduled one is final at once, and never begins", async () => {
  const { project, send, cancel, get, now, bus } = dispatch;
  const projectId = await project();
  const sendAt = new Date(now().getTime() + 3_600_000).toISOString();
  const id = await send(projectId, { sendAt });
  await eventually(async () => expect(await get(projectId, id)).toMatchObject({ status: "scheduled" }));
  expect(await cancel(projectId, id)).toMatchObject({ status: "cancelled", counts: { devices: 0 } });
  expect(await get(projectId, id)).toMatchObject({ status: "cancelled", completed_at: expect.any(String) });
  // A batch that arrives in spite of that changes nothing.
  await publish(
    bus,
    ExpandedV1,
    { projectId, notificationId: id, n: 0, batches: 1, devices: 1, unmatched: [] },
    { id: `${id}/x` },
  );
  expect(await get(projectId, id)).toMatchObject({ status: "cancelled", counts: { devices: 0 } });
});

test("before the command is processed: the tombstone holds", async () => {
  const { project, cancel, get, now, bus, mongoProxy } = dispatch;
  const projectId = await project();
  const notificationId = newNotificationId(now());
  const data: SendV1 = {
    projectId,
    notificationId,
    content: { title: "Hello", targets: ["all"] },
    acceptedAt: now().toISOString(),
    expiresAt: new Date(now().getTime() + day).toISOString(),
  };
  await mongoProxy.cut();
  await publish(bus, SendV1, data, { id: notificationId });
  await expect(cancel(projectId, notificationId)).rejects.toMatchObject({ code: "database-unavailable" });
  await mongoProxy.heal();
  const answer = await eventually(() => cancel(projectId, notificationId).catch(finalOrAgain));
  expect(answer.status).toBe("cancelled");
  await eventually(async () => expect(await get(projectId, notificationId)).toMatchObject({ status: "cancelled" }));

  function finalOrAgain(error: unknown) {
    if (error instanceof Error && "code" in error && error.code === "notification-final")
      return get(projectId, notificationId);
    throw error;
  }
});

test("an unknown one is not found", async () => {
  const projectId = await dispatch.project();
  await expect(dispatch.cancel(projectId, newNotificationId(new Date()))).rejects.toMatchObject({
    code: "notification-not-found",
  });
});
