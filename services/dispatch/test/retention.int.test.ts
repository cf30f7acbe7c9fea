import { listDeadLetters, publish, sendRequest } from "@herald/bus";
import {
  DeliverBatchV1,
  deliveryRequests,
  type NotificationId,
  newNotificationId,
  type ProjectId,
} from "@herald/contracts";
import { eventually } from "@herald/testing";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type DispatchTest, device, devices, startDispatchTest } from "./dispatch-fixture.ts";

const day = 86_400_000;

let dispatch: DispatchTest;
beforeAll(async () => {
  dispatch = await startDispatchTest({ HERALD_DISPATCH_RETENTION: "40d" }, { retentionEveryMs: 200 });
});
afterAll(() => dispatch.stop());

const sent = async (projectId: ProjectId, ttlDays = 1): Promise<NotificationId> => {
  const expiresAt = new Date(dispatch.now().getTime() + ttlDays * day).toISOString();
  const id = await dispatch.send(projectId, { expiresAt });
  await dispatch.partition(projectId, id, [devices(3), devices(2)]);
  return id;
};
const listed = (projectId: ProjectId, notificationId: NotificationId) =>
  sendRequest(dispatch.bus, deliveryRequests.list, {
    projectId,
    notificationId,
    page: { by: "page", page: 1, perPage: 10 },
  });

test("what ended longer ago than the retention goes with its content and its deliveries, and nothing else does", async () => {
  const { project, final, get, rows, pass, simulators, partition } = dispatch;
  const [projectId, other] = [await project(), await project()];
  const old = await sent(projectId);
  const alsoOld = await sent(other);
  const before = await final(projectId, old);
  await final(other, alsoOld);
  // As old, but not ended: its rows must stay, because its counts are their sums.
  simulators.script([{ provider: "apns", tokenPrefix: "503", status: 503, headers: { "retry-after": "2419200" } }]);
  const waiting = await dispatch.send(projectId, {
    expiresAt: new Date(dispatch.now().getTime() + 60 * day).toISOString(),
  });
  await partition(projectId, waiting, [[device("503"), ...devices(1)].sort((one, two) => (one.id < two.id ? -1 : 1))]);
  await eventually(async () => expect(await rows(waiting)).toMatchObject([{ state: "final" }, { state: "waiting" }]));

  pass(20 * day);
  const young = await sent(projectId);
  await final(projectId, young);
  pass(20 * day + 60_000);
  await eventually(async () => {
    expect(await rows(old)).toEqual([]);
    expect(await rows(alsoOld)).toEqual([]);
    await expect(listed(other, alsoOld)).rejects.toMatchObject({ code: "notification-gone" });
  });
  expect(before).toMatchObject({ status: "completed", counts: { devices: 5, accepted: 5 } });
  for (const asked of [get, listed, trace, dispatch.cancel])
    await expect(asked(projectId, old)).rejects.toMatchObject({ code: "notification-gone" });
  expect(await stored().countDocuments({ _id: { $in: [old, alsoOld] } })).toBe(0);
  // A recent id that Herald never issued is `not-found`, not `gone`.
  await expect(get(projectId, newNotificationId(dispatch.now()))).rejects.toMatchObject({
    code: "notification-not-found",
  });

  expect((await listed(projectId, young)).data).toHaveLength(5);
  expect((await listed(projectId, waiting)).data).toHaveLength(2);
  expect(await get(projectId, waiting)).toMatchObject({ counts: { devices: 2, accepted: 1, pending: 1 } });
  simulators.script([]);
  pass(10 * day);
  expect(await final(projectId, waiting)).toMatchObject({ counts: { devices: 2, accepted: 2 } });
});

test("a batch that comes again when its notification is gone is not sent and leaves nothing", async () => {
  const { project, final, rows, pass, simulators, partition } = dispatch;
  const projectId = await project();
  const batch = devices(2);
  const id = await dispatch.send(projectId);
  await partition(projectId, id, [batch]);
  await final(projectId, id);
  pass(41 * day);
  await eventually(async () => expect(await stored().countDocuments({ _id: id })).toBe(0));
  const pushed = simulators.stats().apns?.total;
  const data: DeliverBatchV1 = {
    ...{ batchId: `${id}/0/0`, projectId, notificationId: id },
    ...{ lane: "broadcast", platform: "ios", devices: batch },
  };
  await publish(dispatch.bus, DeliverBatchV1, data, { id: `${data.batchId}/again` });
  await eventually(async () =>
    expect((await listDeadLetters(dispatch.bus, { by: "page", page: 1, perPage: 10 })).data).toMatchObject([
      { reason: "notification-not-found" },
    ]),
  );
  expect(simulators.stats().apns?.total).toBe(pushed);
  expect(await rows(id)).toEqual([]);
});

test("more rows than a batch: the notification goes after the last of them", async () => {
  const { project, final, rows, pass, partition, database } = dispatch;
  const projectId = await project();
  const id = await dispatch.send(projectId);
  await partition(projectId, id, [devices(1)]);
  await final(projectId, id);
  const [row] = await rows(id);
  const more = Array.from({ length: 4_500 }, (_, index) => ({ ...row, _id: `${id}/0/${index + 1}` }));
  await database.client
    .db(database.name)
    .collection("deliveries")
    .insertMany(more as never[]);
  pass(41 * day);
  await eventually(async () => {
    const left = await stored().countDocuments({ _id: id });
    // Read in this order, so that the test detects rows without their notification.
    expect(left === 0 ? await rows(id) : [left]).toEqual([]);
  });
});

const stored = () => dispatch.database.client.db(dispatch.database.name).collection<{ _id: string }>("notifications");

const trace = (projectId: ProjectId, notificationId: NotificationId) =>
  sendRequest(dispatch.bus, deliveryRequests.trace, { projectId, notificationId, deviceId: device().id });
