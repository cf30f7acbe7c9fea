import { randomUUID } from "node:crypto";
import { lastMessage, publish } from "@herald/bus";
import { DeliverBatchV1, DueV1, ExpandV1, newNotificationId, SendV1 } from "@herald/contracts";
import { eventually } from "@herald/testing";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { batchOf, deadLetterActions, raw, secondPage } from "./dead-letters-fixture.ts";
import { type DispatchTest, device, devices, startDispatchTest } from "./dispatch-fixture.ts";

let dispatch: DispatchTest;
beforeAll(async () => {
  dispatch = await startDispatchTest();
});
afterAll(() => dispatch.stop());
beforeEach(() => dispatch.simulators.clear());

const { die, started, notSent, expanded } = deadLetterActions(() => dispatch);

describe("a dead letter", () => {
  test("of a batch makes its devices final, failed by Herald", async () => {
    const { projectId, id } = await started();
    const batch = batchOf(projectId, id, 1, 3);
    await die("dispatch-broadcast-ios", DeliverBatchV1, batch);
    await dispatch.partition(projectId, id, [devices(2)], { of: 2 });
    await expanded(projectId, id, 2, 5);
    expect(await dispatch.final(projectId, id)).toMatchObject({
      counts: { devices: 5, accepted: 2, failed: 3 },
      failures: { internal: 3 },
    });
    expect(await dispatch.deliveries(projectId, id)).toEqual(
      expect.arrayContaining(
        batch.devices.map(({ id }) => expect.objectContaining({ device_id: id, reason: "internal", attempts: 0 })),
      ),
    );
    expect(dispatch.simulators.stats().apns?.total).toBe(2);
  });

  test("of a batch that was settled before changes nothing", async () => {
    const { projectId, id } = await started();
    const one = device();
    await dispatch.partition(projectId, id, [[one]], { of: 2 });
    await eventually(async () => expect(await dispatch.rows(id)).toMatchObject([{ state: "final" }]));
    await die("dispatch-broadcast-ios", DeliverBatchV1, batchOf(projectId, id, 0, [one]));
    await dispatch.partition(projectId, id, [devices(1)], { from: 1, of: 2 });
    expect(await dispatch.final(projectId, id)).toMatchObject({ counts: { devices: 2, accepted: 2 } });
  });

  test("of a wake-up makes what waited final", async () => {
    const { projectId, id } = await started();
    dispatch.simulators.script([{ provider: "apns", status: 503, headers: { "retry-after": "600" } }]);
    await dispatch.partition(projectId, id, [devices(2)]);
    const due = `${id}/0/0/2`;
    await eventually(async () =>
      expect((await dispatch.rows(id)).at(-1)).toMatchObject({ _id: due, state: "waiting" }),
    );
    await die("dispatch-due", DueV1, { kind: "batch", projectId, key: due.replaceAll("/", "-"), id: due });
    expect(await dispatch.final(projectId, id)).toMatchObject({
      counts: { devices: 2, failed: 2 },
      failures: { internal: 2 },
    });
  });

  test("of a send has it expanded, so that every device is counted, and sends nothing", async () => {
    const send = await notSent();
    const { projectId, notificationId } = send;
    await die("dispatch-start", SendV1, send);
    await dispatch.partition(projectId, notificationId, [devices(4)]);
    expect(await dispatch.final(projectId, notificationId)).toMatchObject({
      counts: { devices: 4, failed: 4 },
      failures: { internal: 4 },
    });
    expect(dispatch.simulators.stats().apns).toBeUndefined();
  });

  test("of an expansion ends the notification with what was partitioned", async () => {
    const { projectId, id } = await started();
    await dispatch.partition(projectId, id, [devices(2)], { of: 2 });
    await die("registry-expand", ExpandV1, secondPage(projectId, id));
    await eventually(async () => expect(await dispatch.rows(id)).toMatchObject([{ state: "final" }]));
    dispatch.pass(61_000);
    await eventually(async () => {
      dispatch.pass(61_000);
      expect(await dispatch.get(projectId, id)).toMatchObject({
        status: "completed",
        counts: { devices: 2, accepted: 2 },
      });
    });
  });
});

describe("poison", () => {
  test.each([
    ["dispatch-start", "push.cmd.v1.dispatch.send.p.n"],
    ["dispatch-complete-expansion", "push.cmd.v1.dispatch.expanded.p.n"],
    ["dispatch-direct-ios", "push.deliver.v1.direct.ios.p"],
    ["dispatch-due", "push.due.v1.batch.p.k"],
  ])("on %s goes to the dead letters, and the next message is handled", async (durable, subject) => {
    for (const body of [null, 7, "x", [], { projectId: { $ne: null } }, { projectId: "prj_1" }])
      await publish(dispatch.bus, raw(subject), body, { id: randomUUID() });
    await eventually(async () => {
      const found = await lastMessage(dispatch.bus, "PUSH_DLQ", `push.dlq.v1.${durable}`, raw(subject));
      expect(found?.data).toEqual({ projectId: "prj_1" });
    });
    const { projectId, id } = await started();
    await dispatch.partition(projectId, id, [devices(1)], { lane: "direct" });
    expect(await dispatch.final(projectId, id)).toMatchObject({ counts: { accepted: 1 } });
  });

  test("a batch of a notification that does not exist is given up", async () => {
    const projectId = await dispatch.project();
    const notificationId = newNotificationId(dispatch.now());
    const batchId = `${notificationId}/0/0`;
    await publish(
      dispatch.bus,
      DeliverBatchV1,
      { ...batchOf(projectId, notificationId, 0, 1), lane: "direct" },
      { id: batchId },
    );
    await eventually(async () => {
      const found = await lastMessage(dispatch.bus, "PUSH_DLQ", "push.dlq.v1.dispatch-direct-ios", DeliverBatchV1);
      expect(found?.data).toMatchObject({ batchId });
    });
    expect(await dispatch.rows(notificationId)).toEqual([]);
    expect(dispatch.simulators.stats().apns).toBeUndefined();
  });
});
