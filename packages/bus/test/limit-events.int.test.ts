import { type Bus, closeBus, limitEventsPerProject, publishEvent, publishEvents } from "@herald/bus";
import { newDeviceId, newNotificationId, type OutboxEvent, type ProjectId } from "@herald/contracts";
import { eventually } from "@herald/testing";
import { jetstream } from "@nats-io/jetstream";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { type BusTest, newProject, startBusTest } from "./fixture.ts";
import { connectAs } from "./nats-login.ts";

const limit = 1_048_576;

let t: BusTest;
let bus: Bus;
beforeAll(async () => {
  t = await startBusTest();
  bus = await connectAs(t, "analytics");
});
beforeEach(async () => {
  await t.reset();
  await t.raw.jsm.streams.update("PUSH_EVENTS", { max_bytes: limit });
});
afterAll(async () => {
  await closeBus(bus);
  await t.stop();
});

const at = new Date("2030-01-01T00:00:00Z");
let made = 0;
const updated = (projectId: ProjectId): OutboxEvent => {
  const deviceId = newDeviceId(at);
  const data = { project_id: projectId, device_id: deviceId, changed: ["metadata", `n${made}`], at: at.toISOString() };
  return { id: `update-${made++}`, event: "DeviceUpdatedV1", subject: deviceId, at, data };
};
const delivered = (projectId: ProjectId, devices = 1): OutboxEvent => {
  const notificationId = newNotificationId(at);
  const data = {
    ...{
      project_id: projectId,
      notification_id: notificationId,
      at: at.toISOString(),
      batch_id: `${notificationId}/0/0`,
    },
    ...{ platform: "ios" as const, devices: Array.from({ length: devices }, () => newDeviceId(at)) },
  };
  return { id: `delivery-${made++}`, event: "DeliveryAcceptedV1", subject: notificationId, at, data };
};
const times = (count: number, one: () => OutboxEvent) => Array.from({ length: count }, one);

const stored = async () => {
  const { state } = await t.raw.jsm.streams.info("PUSH_EVENTS", { subjects_filter: "push.evt.v1.>" });
  return {
    bytes: state.bytes,
    of: (id: ProjectId, type: string) => state.subjects?.[`push.evt.v1.${id}.${type}`] ?? 0,
  };
};
/** Publishes each event in a message of its own. */
const publishAlone = async (events: readonly OutboxEvent[]) => {
  for (const event of events) await publishEvent(t.bus, event);
};
/** Publishes until the stream is more than four fifths full, many events in a message. */
const fill = async (one: () => OutboxEvent) => {
  while ((await stored()).bytes <= limit * 0.82) await publishEvents(t.bus, times(50, one));
};

test("removes the oldest device events of the largest project, and nothing else", async () => {
  const [quiet, loud] = [newProject(), newProject()];
  await publishAlone([...times(9, () => updated(quiet)), delivered(quiet), ...times(20, () => delivered(loud))]);
  await fill(() => updated(loud));
  const before = (await stored()).of(loud, "device.updated");
  const sharing = limitEventsPerProject(bus, 50);
  await eventually(async () => expect((await stored()).bytes).toBeLessThanOrEqual(limit * 0.8));
  await sharing.stop();
  const { bytes, of } = await stored();
  expect([of(quiet, "device.updated"), of(quiet, "delivery.accepted"), of(loud, "delivery.accepted")]).toEqual([
    9, 1, 20,
  ]);
  // The stream keeps as much as fits; sizes are estimates, so the limit is not exact.
  expect(bytes).toBeGreaterThan(limit * 0.65);
  expect(of(loud, "device.updated")).toBeLessThan(before);
  const filter = `push.evt.v1.${loud}.device.updated`;
  const last = await t.raw.jsm.streams.getMessage("PUSH_EVENTS", { last_by_subj: filter });
  expect(last?.json<{ data: { changed: string[] } }[]>().at(-1)?.data.changed).toContain(`n${made - 1}`);
  expect(t.logged).toContainEqual(expect.objectContaining({ level: "warn", projects: [loud] }));
});

test("removes events only after Herald's durables have settled them", async () => {
  const [loud, other] = [newProject(), newProject()];
  await publishAlone(times(20, () => delivered(loud, 500)));
  await fill(() => updated(other));
  const before = (await stored()).of(other, "device.updated");
  const sharing = limitEventsPerProject(bus, 50);
  await eventually(async () => expect((await stored()).of(other, "device.updated")).toBeLessThan(before));
  expect((await stored()).of(loud, "delivery.accepted")).toBe(20);

  for (const durable of ["analytics-events", "registry-retire-device"]) {
    const consumer = await jetstream(t.raw.nc).consumers.get("PUSH_EVENTS", durable);
    await eventually(async () => {
      for await (const message of await consumer.fetch({ max_messages: 1_000, expires: 1_000 })) message.ack();
      const { num_pending, num_ack_pending } = await consumer.info();
      expect([num_pending, num_ack_pending]).toEqual([0, 0]);
    });
  }
  // Ten more that are not settled: the project now exceeds its share, and only the first twenty may be removed.
  await publishAlone(times(10, () => delivered(loud, 500)));
  await eventually(async () => expect((await stored()).of(loud, "delivery.accepted")).toBeLessThan(30));
  await sharing.stop();
  expect((await stored()).of(loud, "delivery.accepted")).toBeGreaterThanOrEqual(10);
});
