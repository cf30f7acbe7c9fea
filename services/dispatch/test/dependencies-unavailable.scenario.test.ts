import { DeliveryAcceptedV1, DeliveryFailedV1 } from "@herald/contracts";
import { eventually } from "@herald/testing";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { type DispatchTest, device, devices, startDispatchTest } from "./dispatch-fixture.ts";

let dispatch: DispatchTest;
beforeAll(async () => {
  dispatch = await startDispatchTest();
});
afterAll(() => dispatch.stop());
beforeEach(() => dispatch.simulators.clear());

/** Of a chunk, which is sent as one, the first device is answered at once: then all of it is on its way. */
const slowly = [
  { provider: "apns", tokenPrefix: "fa57", status: 200 },
  { provider: "apns", status: 200, delayMs: 1_000 },
];
const chunk = () => [device("fa57"), ...devices(29)].sort((one, other) => (one.id < other.id ? -1 : 1));
const answered = (count: number) => eventually(() => expect(dispatch.simulators.stats().apns?.total).toBe(count));

test("the database goes after sending: the outcomes are kept, and no device is sent to twice", async () => {
  const { project, send, partition, final, simulators, mongoProxy, deliveries } = dispatch;
  const projectId = await project();
  const id = await send(projectId);
  simulators.script(slowly);
  await partition(projectId, id, [chunk()]);
  await answered(1);
  await mongoProxy.cut();
  await answered(30);
  // Long enough for several tries to write their outcomes.
  await eventually(() => expect(Date.now() - Date.parse(simulators.stats().apns?.lastAt ?? "")).toBeGreaterThan(1_500));
  await mongoProxy.heal();
  expect(await final(projectId, id)).toMatchObject({ counts: { devices: 30, accepted: 30 } });
  expect(simulators.stats().apns?.total).toBe(30);
  for (const delivery of await deliveries(projectId, id))
    expect(delivery).toMatchObject({ possible_repeat: false, attempts: 1 });
});

test("the database is unavailable from the start: everything is done when it is back, once", async () => {
  const { project, send, partition, final, simulators, mongoProxy, get } = dispatch;
  const projectId = await project();
  await mongoProxy.cut();
  const id = await send(projectId);
  await expect(get(projectId, id)).rejects.toMatchObject({ code: "database-unavailable" });
  await mongoProxy.heal();
  await partition(projectId, id, [devices(5)]);
  expect(await final(projectId, id)).toMatchObject({ counts: { devices: 5, accepted: 5 } });
  expect(simulators.stats().apns?.total).toBe(5);
});

test("the broker goes while a batch is sent: it is finished all the same, and its events come later", async () => {
  const { project, send, partition, simulators, natsProxy, rows, final, lastEvent } = dispatch;
  const projectId = await project();
  const id = await send(projectId);
  simulators.script(slowly);
  await partition(projectId, id, [chunk()]);
  await answered(1);
  await natsProxy.cut();
  await eventually(async () => expect(await rows(id)).toMatchObject([{ state: "final" }]));
  expect(await lastEvent(projectId, DeliveryAcceptedV1)).toBeUndefined();
  await natsProxy.heal();
  await eventually(() => final(projectId, id));
  const [row] = await rows(id);
  await eventually(
    async () => {
      const event = await lastEvent(projectId, DeliveryAcceptedV1);
      expect(event).toMatchObject({ notification_id: id, batch_id: row?._id, at: row?.settledAt?.toISOString() });
      expect(event?.devices).toHaveLength(30);
    },
    { timeoutMs: 15_000 },
  );
  // It was made again from the row: nothing else remembers it.
  expect(row).not.toHaveProperty("outbox");
  expect(simulators.stats().apns?.total).toBe(30);
});

test("the broker goes while a batch is sent that not everybody takes: its events stay in its row until then", async () => {
  const { project, send, partition, simulators, natsProxy, rows, final, lastEvent } = dispatch;
  const projectId = await project();
  const id = await send(projectId);
  simulators.script([{ provider: "apns", tokenPrefix: "dead", status: 410 }, ...slowly]);
  await partition(projectId, id, [[device("dead"), ...chunk()].sort((one, other) => (one.id < other.id ? -1 : 1))]);
  await answered(2);
  await natsProxy.cut();
  const events = [{ event: "DeliveryAcceptedV1" }, { event: "DeliveryFailedV1" }];
  await eventually(async () => expect(await rows(id)).toMatchObject([{ state: "final", outbox: events }]));
  await natsProxy.heal();
  await eventually(() => final(projectId, id));
  await eventually(async () => expect((await rows(id))[0]).not.toHaveProperty("outbox"), { timeoutMs: 15_000 });
  expect(await lastEvent(projectId, DeliveryAcceptedV1)).toMatchObject({ notification_id: id });
  expect(await lastEvent(projectId, DeliveryFailedV1)).toMatchObject({ notification_id: id });
  expect(simulators.stats().apns?.total).toBe(31);
});

test("the provider is unavailable: what could not be sent waits, and is sent when it is back", async () => {
  const { putProvider, send, partition, final, rows, pass } = dispatch;
  const projectId = await dispatch.project();
  // A closed port.
  await putProvider(projectId, { endpoint: "https://127.0.0.1:1" });
  const id = await send(projectId);
  await partition(projectId, id, [[device()]]);
  await eventually(async () => expect((await rows(id)).at(-1)).toMatchObject({ state: "waiting" }), {
    timeoutMs: 25_000,
  });
  await putProvider(projectId);
  pass(60_000);
  expect(await final(projectId, id)).toMatchObject({ counts: { devices: 1, accepted: 1 } });
});
