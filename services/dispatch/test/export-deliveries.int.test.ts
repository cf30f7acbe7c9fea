import { sendRequest } from "@herald/bus";
import {
  type DeliveryStatus,
  deliveryRequests,
  type ExportedDelivery,
  type NotificationId,
  newNotificationId,
  notificationRequests,
  type ProjectId,
} from "@herald/contracts";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { type DispatchTest, devices, startDispatchTest } from "./dispatch-fixture.ts";

let dispatch: DispatchTest;
beforeAll(async () => {
  dispatch = await startDispatchTest();
});
afterAll(() => dispatch.stop());
beforeEach(() => dispatch.simulators.clear());

type Wanted = { notificationId?: NotificationId; status?: DeliveryStatus; createdAfter?: string };

const exportAll = async (projectId: ProjectId, limit: number, wanted: Wanted = {}): Promise<ExportedDelivery[]> => {
  const rows: ExportedDelivery[] = [];
  let after: string | undefined;
  for (;;) {
    const page = await sendRequest(dispatch.bus, deliveryRequests.export, {
      projectId,
      limit,
      ...wanted,
      ...(after && { after }),
    });
    rows.push(...page.rows.map((row) => JSON.parse(row)));
    if (page.next === null) return rows;
    after = page.next;
  }
};

/** Sends two notifications of three batches each, with one unregistered device. */
const sendTwo = async () => {
  const { project, send, partition, final, simulators } = dispatch;
  const projectId = await project();
  simulators.script([{ provider: "apns", tokenPrefix: "dead", status: 410, reason: "Unregistered" }]);
  const ids = [await send(projectId), await send(projectId)].sort();
  const batches = [devices(11), devices(5), devices(2)];
  for (const id of ids) await partition(projectId, id, batches);
  for (const id of ids) await final(projectId, id);
  return { projectId, ids, devices: batches.flat().map(({ id }) => id) };
};

test.each([1, 4, 1_000])("every delivery of every notification comes once, in pages of %i", async (limit) => {
  const { projectId, ids, devices: all } = await sendTwo();
  const rows = await exportAll(projectId, limit);
  const key = ({ notification_id: id, device_id }: ExportedDelivery) => `${id} ${device_id}`;
  expect(rows.map(key).sort()).toEqual(ids.flatMap((id) => all.map((device) => `${id} ${device}`)).sort());
  expect(new Set(rows.map(({ id }) => id)).size).toBe(rows.length);
  expect(rows[0]).toMatchObject({ status: "accepted", platform: "ios", attempts: 1 });
});

test("one notification, a status or a time chooses rows", async () => {
  const { projectId, ids, devices: all } = await sendTwo();
  const [, second = ""] = ids;
  const notificationId = second as NotificationId;
  expect((await exportAll(projectId, 5, { notificationId })).map((row) => row.device_id).sort()).toEqual(
    [...all].sort(),
  );
  expect(await exportAll(projectId, 5, { status: "failed" })).toEqual([]);
  expect(await exportAll(projectId, 5, { status: "accepted" })).toHaveLength(2 * all.length);
  expect(await exportAll(projectId, 5, { createdAfter: "2100-01-01T00:00:00Z" })).toEqual([]);
  const stranger = await dispatch.project();
  expect(await exportAll(stranger, 5)).toEqual([]);
  const foreign = exportAll(stranger, 5, { notificationId });
  await expect(foreign).rejects.toMatchObject({ code: "notification-not-found" });
  const absent = exportAll(projectId, 5, { notificationId: newNotificationId(new Date()) });
  await expect(absent).rejects.toMatchObject({ code: "notification-not-found" });
});

test("notifications come with their counts", async () => {
  const { projectId, ids, devices: all } = await sendTwo();
  const page = await sendRequest(dispatch.bus, notificationRequests.export, { projectId, limit: 1 });
  expect(page.next).toBe(ids[0]);
  expect(page.rows.map((row) => JSON.parse(row))).toMatchObject([{ id: ids[0], counts: { accepted: all.length } }]);
  const rest = await sendRequest(dispatch.bus, notificationRequests.export, {
    projectId,
    limit: 10,
    after: ids[0] ?? "",
  });
  expect(rest.next).toBeNull();
  expect(rest.rows.map((row) => JSON.parse(row))).toMatchObject([{ id: ids[1], status: "completed" }]);
});
