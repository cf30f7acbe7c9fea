import { lastMessage, publish } from "@herald/bus";
import {
  DeliverBatchV1,
  DueV1,
  ExpandedV1,
  ExpandV1,
  headerNames,
  type MessageContract,
  newNotificationId,
  SendV1,
} from "@herald/contracts";
import { eventually } from "@herald/testing";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { z } from "zod";
import { type DispatchTest, day, device, devices, startDispatchTest } from "./dispatch-fixture.ts";

let dispatch: DispatchTest;
beforeAll(async () => {
  dispatch = await startDispatchTest();
});
afterAll(() => dispatch.stop());
beforeEach(() => dispatch.simulators.clear());

/** Anything on any subject, as a version that went wrong might publish it. */
const raw = (subject: string): MessageContract => ({
  name: "Raw",
  pattern: subject,
  filter: subject,
  schema: z.unknown(),
  subject: () => subject,
});

let letters = 0;
/** As the bus puts a message into the dead letters. */
const die = <Schema extends z.ZodType>(durable: string, contract: MessageContract<Schema>, data: z.output<Schema>) =>
  publish(dispatch.bus, raw(`push.dlq.v1.${durable}`), data, {
    id: `${durable}/${letters++}`,
    headers: { [headerNames.deadSubject]: contract.subject(data), [headerNames.deadReason]: "exhausted" },
  });

const started = async () => {
  const projectId = await dispatch.project();
  const id = await dispatch.send(projectId);
  await dispatch.expansion(projectId, id);
  return { projectId, id };
};

describe("a dead letter", () => {
  test("of a batch makes its devices final, failed by Herald", async () => {
    const { projectId, id } = await started();
    const batch: DeliverBatchV1 = {
      batchId: `${id}/0/1`,
      projectId,
      notificationId: id,
      lane: "broadcast",
      platform: "ios",
      devices: devices(3),
    };
    await die("dispatch-broadcast-ios", DeliverBatchV1, batch);
    await dispatch.deal(projectId, id, [devices(2)], { of: 2 });
    await publish(
      dispatch.bus,
      ExpandedV1,
      { projectId, notificationId: id, batches: 2, devices: 5, unmatched: [] },
      { id: `${id}/e` },
    );
    expect(await dispatch.final(projectId, id)).toMatchObject({
      counts: { devices: 5, accepted: 2, failed: 3 },
      failures: { internal: 3 },
    });
    expect(await dispatch.deliveries(projectId, id)).toEqual(
      expect.arrayContaining(
        batch.devices.map(({ id: device_id }) =>
          expect.objectContaining({ device_id, reason: "internal", attempts: 0 }),
        ),
      ),
    );
    expect(dispatch.simulators.stats().apns?.total).toBe(2);
  });

  test("of a batch that was settled before changes nothing", async () => {
    const { projectId, id } = await started();
    const one = device();
    await dispatch.deal(projectId, id, [[one]], { of: 2 });
    await eventually(async () => expect(await dispatch.rows(id)).toMatchObject([{ state: "final" }]));
    await die("dispatch-broadcast-ios", DeliverBatchV1, {
      batchId: `${id}/0/0`,
      projectId,
      notificationId: id,
      lane: "broadcast",
      platform: "ios",
      devices: [one],
    });
    await dispatch.deal(projectId, id, [devices(1)], { from: 1, of: 2 });
    expect(await dispatch.final(projectId, id)).toMatchObject({ counts: { devices: 2, accepted: 2 } });
  });

  test("of a wake-up makes what waited final", async () => {
    const { projectId, id } = await started();
    dispatch.simulators.script([{ provider: "apns", status: 503, headers: { "retry-after": "600" } }]);
    await dispatch.deal(projectId, id, [devices(2)]);
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
    const projectId = await dispatch.project();
    const notificationId = newNotificationId(dispatch.now());
    await die("dispatch-start", SendV1, {
      projectId,
      notificationId,
      content: { title: "Hello", targets: ["all"] },
      acceptedAt: dispatch.now().toISOString(),
      expiresAt: new Date(dispatch.now().getTime() + day).toISOString(),
    });
    await dispatch.deal(projectId, notificationId, [devices(4)]);
    expect(await dispatch.final(projectId, notificationId)).toMatchObject({
      counts: { devices: 4, failed: 4 },
      failures: { internal: 4 },
    });
    expect(dispatch.simulators.stats().apns).toBeUndefined();
  });

  test("of an expansion ends the notification with what was dealt", async () => {
    const { projectId, id } = await started();
    await dispatch.deal(projectId, id, [devices(2)], { of: 2 });
    const page = {
      projectId,
      notificationId: id,
      page: 1,
      fromBucket: 9,
      toBucket: 10,
      targets: ["all"],
      lane: "broadcast",
    } as const;
    await die("registry-expand", ExpandV1, {
      ...page,
      targets: ["all"],
      expiresAt: new Date(Date.now() + day).toISOString(),
    });
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
    ["dispatch-finish", "push.cmd.v1.dispatch.expanded.p.n"],
    ["dispatch-direct-ios", "push.deliver.v1.direct.ios.p"],
    ["dispatch-due", "push.due.v1.batch.p.k"],
  ])("on %s goes to the dead letters, and the next message is handled", async (durable, subject) => {
    for (const body of [null, 7, "x", [], { projectId: { $ne: null } }, { projectId: "prj_1" }])
      await publish(dispatch.bus, raw(subject), body, { id: `${durable}/poison/${letters++}` });
    await eventually(async () => {
      const found = await lastMessage(dispatch.bus, "PUSH_DLQ", `push.dlq.v1.${durable}`, raw(subject));
      expect(found?.data).toEqual({ projectId: "prj_1" });
    });
    const { projectId, id } = await started();
    await dispatch.deal(projectId, id, [devices(1)], { lane: "direct" });
    expect(await dispatch.final(projectId, id)).toMatchObject({ counts: { accepted: 1 } });
  });

  test("a batch of a notification that does not exist is given up", async () => {
    const projectId = await dispatch.project();
    const notificationId = newNotificationId(dispatch.now());
    const batchId = `${notificationId}/0/0`;
    await publish(
      dispatch.bus,
      DeliverBatchV1,
      { batchId, projectId, notificationId, lane: "direct", platform: "ios", devices: devices(1) },
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
