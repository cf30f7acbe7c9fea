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

/**
 * The first device of a chunk gets its response at once. All pushes of the chunk are in flight then, because it is sent as one; the others
 * are answered after a busy machine has cut a connection.
 */
const slowly = [
  { provider: "apns", tokenPrefix: "fa57", status: 200 },
  { provider: "apns", status: 200, delayMs: 3_000 },
];
const chunk = () => [device("fa57"), ...devices(29)].sort((one, other) => (one.id < other.id ? -1 : 1));
const answered = (count: number) =>
  eventually(() => expect(dispatch.simulators.stats().apns?.total).toBeGreaterThanOrEqual(count));

test("the database becomes unavailable after the pushes: outcomes are kept, and no device gets a second push", async () => {
  const { project, send, partition, final, simulators, mongoProxy, deliveries } = dispatch;
  const projectId = await project();
  const id = await send(projectId);
  simulators.script(slowly);
  await partition(projectId, id, [chunk()]);
  await answered(1);
  await mongoProxy.cut();
  await answered(30);
  // Long enough for several attempts to write the outcomes.
  await eventually(() => expect(Date.now() - Date.parse(simulators.stats().apns?.lastAt ?? "")).toBeGreaterThan(1_500));
  await mongoProxy.heal();
  expect(await final(projectId, id)).toMatchObject({ counts: { devices: 30, accepted: 30 } });
  expect(simulators.stats().apns?.total).toBe(30);
  for (const delivery of await deliveries(projectId, id))
    expect(delivery).toMatchObject({ possible_repeat: false, attempts: 1 });
});

test("the database is unavailable from the start: all sends complete when it is back, once each", async () => {
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

test("the broker becomes unavailable during a batch: the batch is finished, and its events are published later", async () => {
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
  await eventually(async () => {
    const event = await lastEvent(projectId, DeliveryAcceptedV1);
    expect(event).toMatchObject({ notification_id: id, batch_id: row?._id, at: row?.settledAt?.toISOString() });
    expect(event?.devices).toHaveLength(30);
  });
  // The event was rebuilt from the row, because no outbox stores it.
  expect(row).not.toHaveProperty("outbox");
  expect(simulators.stats().apns?.total).toBe(30);
});

test("the broker becomes unavailable during a batch with failures: its events stay in its row until the broker is back", async () => {
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
  await eventually(async () => expect((await rows(id))[0]).not.toHaveProperty("outbox"));
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
