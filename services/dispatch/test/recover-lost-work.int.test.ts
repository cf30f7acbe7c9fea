import { publish } from "@herald/bus";
import {
  ExpandedV1,
  type GroupedSend,
  type NotificationId,
  newNotificationIds,
  type ProjectId,
  type Recipient,
} from "@herald/contracts";
import { eventually, operateBroker, readPublished } from "@herald/testing";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import type { DeliveryDocument } from "../src/stores/delivery-document.ts";
import type { NotificationDocument } from "../src/stores/notification-document.ts";
import { createSmallSendStore } from "../src/stores/small-send-store.ts";
import { type DispatchTest, day, device, devices, startDispatchTest } from "./dispatch-fixture.ts";
import { handleResolveSends, type RegistryFixture } from "./registry-fixture.ts";
import { insertOne } from "./small-sends-fixture.ts";

let dispatch: DispatchTest;
let answers: RegistryFixture;
let hands: Awaited<ReturnType<typeof operateBroker>>;
beforeAll(async () => {
  dispatch = await startDispatchTest();
  hands = await operateBroker(dispatch.broker);
  answers = handleResolveSends(dispatch.bus);
});
afterAll(async () => {
  await answers.stop();
  await hands.close();
  await dispatch.stop();
});
beforeEach(() => {
  answers.reset();
  dispatch.simulators.clear();
});

const db = () => dispatch.database.client.db(dispatch.database.name);
const notifications = () => db().collection<NotificationDocument>("notifications");
const deliveries = () => db().collection<DeliveryDocument>("deliveries");
const known = (some: readonly Recipient[]) => {
  for (const one of some) answers.registry.set(one.id, { devices: [one] });
  return some;
};
/** Makes the sweep check a notification now instead of a minute after it began. */
const checkNow = (id: NotificationId, change: Record<string, unknown> = {}, unset: Record<string, ""> = {}) =>
  notifications().updateOne({ _id: id }, { $set: { nextAt: new Date(0), ...change }, $unset: unset });
const stateOf = (id: NotificationId) => notifications().findOne({ _id: id });
test("a notification whose expansion message was lost is expanded again", async () => {
  const { project, send, expansion, partition, final } = dispatch;
  const projectId = await project();
  const id = await send(projectId);
  await expansion(projectId, id);
  await eventually(async () => expect(await stateOf(id)).toMatchObject({ step: "expanding" }));
  await hands.purge("PUSH_CMD");
  await checkNow(id);
  await expansion(projectId, id);
  // While that message exists, dispatch does not command the expansion again.
  await checkNow(id);
  await eventually(async () => expect((await stateOf(id))?.nextAt?.getTime()).toBeGreaterThan(0));
  await partition(projectId, id, [devices(2)]);
  expect(await final(projectId, id)).toMatchObject({ status: "completed", counts: { devices: 2, accepted: 2 } });
});

test("a batch that never came to the ledger has its notification expanded again, and what is final is not sent again", async () => {
  const { project, send, partition, final, rows, bus, simulators } = dispatch;
  const projectId = await project();
  const id = await send(projectId);
  const [first, second] = [device(), device()];
  await partition(projectId, id, [[first]], { of: 3 });
  await eventually(async () => expect(await rows(id)).toMatchObject([{ state: "final" }]));
  const expanded = { projectId, notificationId: id, n: 0, batches: 2, devices: 2, unmatched: [] };
  await publish(bus, ExpandedV1, expanded, { id: `${id}/first` });
  await eventually(async () => expect(await stateOf(id)).toMatchObject({ expanded: { batches: 2 } }));
  await hands.purge("PUSH_CMD");
  await eventually(async () => {
    const state = await stateOf(id);
    // Again, because the batch's message is acked after its row is final, and a check before that finds the message.
    if (state?.step !== "expanding") await checkNow(id);
    expect(state).toMatchObject({ step: "expanding" });
  });
  await partition(projectId, id, [[second]], { from: 1, of: 3 });
  await publish(bus, ExpandedV1, expanded, { id: `${id}/second` });
  expect(await final(projectId, id)).toMatchObject({ counts: { devices: 2, accepted: 2 } });
  for (const { token } of [first, second]) expect(simulators.pushes({ token })).toHaveLength(1);
});

test("a row that was being sent for a message that is gone is sent again, marked, to those who still have their devices", async () => {
  const { project, send, partition, final, rows, deliveries: list, simulators } = dispatch;
  const projectId = await project();
  const id = await send(projectId);
  const batch = devices(3);
  const [gone] = batch;
  if (gone === undefined) throw new Error("no device");
  known(batch.slice(1));
  dispatch.moved.add(gone.id);
  await partition(projectId, id, [batch]);
  await final(projectId, id);
  // The state as if the outcomes had never been written.
  await deliveries().updateOne(
    { _id: `${id}/0/0` },
    {
      $set: { state: "started", claim: { at: Date.now() - 120_000, sequence: 7_000_000 }, startedAt: new Date(0) },
      $unset: { results: "", resultOf: "", failures: "", settledAt: "" },
    },
  );
  await checkNow(id, { step: "delivering", status: "sending" }, { end: "" });
  const after = await final(projectId, id);
  expect(after).toMatchObject({ counts: { devices: 3, accepted: 2, skipped: 1 }, skips: { moved: 1 } });
  expect(await rows(id)).toMatchObject([{ state: "final", starts: 2 }]);
  const marked = (await list(projectId, id)).filter(({ status }) => status === "accepted");
  expect(marked.map(({ possible_repeat }) => possible_repeat)).toEqual([true, true]);
  for (const { token } of batch.slice(1)) expect(simulators.pushes({ token })).toHaveLength(2);
  expect(simulators.pushes({ token: gone.token })).toHaveLength(1);
});

test("nothing is done twice while the message lives, however long it takes", async () => {
  const { project, send, partition, final, rows, deliveries: list, simulators, pass } = dispatch;
  const projectId = await project();
  const id = await send(projectId);
  const slow = device("5105");
  known([slow]);
  simulators.script([{ provider: "apns", tokenPrefix: "5105", times: 1, delayMs: 1_500 }]);
  await partition(projectId, id, [[slow]]);
  await eventually(() => expect(simulators.pushes({ token: slow.token })).toHaveLength(1));
  pass(120_000);
  for (let round = 0; round < 3; round++) {
    await checkNow(id);
    await eventually(async () => {
      const state = await stateOf(id);
      expect(state?.end !== undefined || (state?.nextAt?.getTime() ?? 0) > 0).toBe(true);
    });
  }
  expect(await final(projectId, id)).toMatchObject({ counts: { devices: 1, accepted: 1 } });
  expect(await rows(id)).toMatchObject([{ state: "final", starts: 1 }]);
  expect(await list(projectId, id)).toMatchObject([{ possible_repeat: false }]);
  expect(simulators.pushes({ token: slow.token })).toHaveLength(1);
});

/** Leaves a small send in its state after the loss of its message: stored, without outcomes. */
const leaveSend = async (projectId: ProjectId, one: Recipient) => {
  const at = dispatch.now();
  const [id = "ntf_" as NotificationId] = newNotificationIds(at, 1);
  const send: GroupedSend = {
    projectId,
    notificationId: id,
    content: { title: "Hello", targets: [one.id] },
    acceptedAt: at.toISOString(),
    expiresAt: new Date(at.getTime() + day).toISOString(),
  };
  const facts = { projectId, notificationId: id, lane: "direct", platform: "ios" } as const;
  const found = { batches: [{ ...facts, batchId: `${id}/0/0`, devices: [one] }], unmatched: [] };
  const claim = { at: Date.now() - 120_000, sequence: 7_000_000 };
  await insertOne(createSmallSendStore(db()), { send, ...found }, claim, new Date(0));
  await checkNow(id);
  return id;
};

test("a small send whose message is gone is sent, marked as a possible repeat, and its acceptance is published", async () => {
  const { project, final, deliveries: list, broker } = dispatch;
  const projectId = await project();
  const one = device();
  const id = await leaveSend(projectId, one);
  expect(await final(projectId, id)).toMatchObject({ status: "completed", counts: { devices: 1, accepted: 1 } });
  expect(await list(projectId, id)).toMatchObject([{ status: "accepted", possible_repeat: true }]);
  await eventually(async () => {
    const published = await readPublished(broker, `push.evt.v1.${projectId}.>`);
    const kinds = published
      .filter(({ body }) => body.includes(id))
      .map(({ subject }) => subject.split(".").slice(4).join("."));
    expect(kinds.toSorted()).toEqual(["delivery.accepted", "notification.accepted", "notification.completed"]);
  });
});

test("a small send whose device is gone by then is completed without a push", async () => {
  const { project, final, simulators } = dispatch;
  const projectId = await project();
  const one = device();
  dispatch.moved.add(one.id);
  const id = await leaveSend(projectId, one);
  expect(await final(projectId, id)).toMatchObject({ status: "completed", counts: { devices: 1, skipped: 1 } });
  expect(simulators.pushes({ token: one.token })).toHaveLength(0);
});
