import { handleRequest, type RequestListener, sendRequest } from "@herald/bus";
import {
  audienceRequests,
  type DeviceId,
  type NotificationContent,
  type NotificationId,
  newTokenId,
  notificationRequests,
  openRequests,
  type ProjectId,
  type SendV1,
  userKey,
} from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import { eventually, readPublished } from "@herald/testing";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { createUserEraser } from "../src/stores/erase-user.ts";
import { notificationCollection } from "../src/stores/notification-document.ts";
import { createRecipientStore } from "../src/stores/recipient-store.ts";
import { createSmallSendStore } from "../src/stores/small-send-store.ts";
import { type DispatchTest, device, startDispatchTest } from "./dispatch-fixture.ts";
import { handleResolveSends, type RegistryFixture } from "./registry-fixture.ts";

const minute = 60_000;

let dispatch: DispatchTest;
let registry: RegistryFixture;
let answering: RequestListener[];
/** Devices that opened what they got. */
const opened = new Set<DeviceId>();
/** How analytics answers whether all opens are stored. */
let isStored: () => boolean;
let asked = 0;
let projectId: ProjectId;
beforeAll(async () => {
  dispatch = await startDispatchTest();
  registry = handleResolveSends(dispatch.bus);
  answering = [
    handleRequest(dispatch.bus, audienceRequests.zones, async () => ({ zones: ["none"] })),
    handleRequest(dispatch.bus, audienceRequests.size, async () => ({ devices: 5_000 })),
    handleRequest(dispatch.bus, openRequests.stored, async () => {
      asked++;
      return { stored: isStored() };
    }),
    handleRequest(dispatch.bus, openRequests.ofDevices, async ({ deviceIds }) => {
      const at = dispatch.now().toISOString();
      return { openedAt: Object.fromEntries(deviceIds.filter((id) => opened.has(id)).map((id) => [id, at])) };
    }),
  ];
});
afterAll(async () => {
  for (const one of [...answering, registry]) await one.stop();
  await dispatch.stop();
});
beforeEach(async () => {
  projectId = await dispatch.project();
  isStored = () => true;
  asked = 0;
});
afterEach(() => {
  dispatch.clock.ahead = 0;
  dispatch.simulators.script([]);
  registry.reset();
});

/** Registry knows a user's devices. */
const user = (userId: string, ...tags: string[]) => {
  const devices = tags.map((tag) => device(tag, { userId }));
  registry.registry.set(`user:${userId}`, { devices });
  return devices.map(({ id }) => id);
};
/** A user whose only device is pushed to. */
const reach = (userId: string) => user(userId, "00");

const send = (targets: string[], content: Partial<NotificationContent> = {}) =>
  dispatch.sendSmall(projectId, { targets, escalate_after: 60, ...content });
const schedule = (sendAt: Date, change: Partial<SendV1> = {}) =>
  dispatch.send(
    projectId,
    { sendAt: sendAt.toISOString(), ...change },
    { targets: ["user:ann"], send_at: sendAt.toISOString(), escalate_after: 60 },
  );

type Unopened = { user_id?: string; device_id?: string; reason: string };
const eventsOf = async (id: NotificationId): Promise<Unopened[]> => {
  const all = await readPublished(dispatch.broker, `push.evt.v1.${projectId}.notification.unopened`);
  return all.map(({ body }) => JSON.parse(body)).filter((event) => event.notification_id === id);
};
const inBrief = (events: readonly Unopened[]) =>
  events.map(({ user_id, device_id, reason }) => `${user_id ?? device_id} ${reason}`).sort();
const hasEvents = (id: NotificationId, ...expected: string[]) =>
  eventually(async () => expect(inBrief(await eventsOf(id))).toEqual(expected.sort()));
/** Once another one that is due later has its event, all before it do. */
const othersHaveEvents = async () => {
  reach("marker");
  const id = await send(["user:marker"]);
  await dispatch.final(projectId, id);
  dispatch.pass(minute + 1_000);
  await hasEvents(id, "marker unopened");
};
const stored = (id: NotificationId) =>
  notificationCollection(dispatch.database.client.db(dispatch.database.name)).findOne({ _id: id });

test("each user, and each device without one, that did not open it has an event with the reason", async () => {
  dispatch.simulators.script([{ provider: "apns", tokenPrefix: "bad", status: 400, reason: "PayloadEmpty" }]);
  reach("ann");
  const [, tablet] = user("bob", "00", "00");
  opened.add(tablet ?? "dev_");
  user("cem", "bad", "00");
  user("dee", "bad");
  const lone = device();
  registry.registry.set(lone.id, { devices: [lone] });
  const owned = device("00", { userId: "fay" });
  registry.registry.set(owned.id, { devices: [owned] });
  const gone = device();
  const targets = [
    "user:ann",
    "user:bob",
    "user:cem",
    "user:dee",
    "user:eve",
    lone.id,
    owned.id,
    gone.id,
    "token:none",
  ];
  const id = await send(targets, { kind: "orders", labels: { campaign: "spring" } });
  await dispatch.final(projectId, id);
  const later = await send(["user:ann"], { escalate_after: 3_600 });
  await dispatch.final(projectId, later);
  expect(await eventsOf(id)).toEqual([]);
  dispatch.pass(minute + 1_000);
  await hasEvents(
    id,
    ...["ann unopened", "cem unopened", "dee not-delivered", "eve no-active-device"],
    ...[`${lone.id} unopened`, "fay unopened", `${gone.id} no-active-device`],
  );
  expect(await eventsOf(id)).toContainEqual({
    project_id: projectId,
    notification_id: id,
    kind: "orders",
    labels: { campaign: "spring" },
    user_id: "ann",
    reason: "unopened",
    at: expect.any(String),
  });
  await othersHaveEvents();
  expect(await eventsOf(later)).toEqual([]);
  await eventually(async () => {
    const { escalation, outbox } = (await stored(id)) ?? {};
    expect({ escalation, outbox }).toEqual({});
  });
});

test("the batches of a large send are read, and what waits for its provider is not delivered", async () => {
  const id = await dispatch.send(projectId, {}, { targets: ["user:ann", "user:bob", "user:cem"], escalate_after: 60 });
  dispatch.simulators.script([
    { provider: "apns", tokenPrefix: "503", status: 503, headers: { "retry-after": "600" } },
  ]);
  const [ann, bob] = [device("00", { userId: "ann" }), device("503", { userId: "bob" })];
  await dispatch.partition(projectId, id, [[ann], [bob]], { lane: "direct" });
  await eventually(async () => expect((await dispatch.get(projectId, id)).counts).toMatchObject({ accepted: 1 }));
  dispatch.pass(minute + 1_000);
  await hasEvents(id, "ann unopened", "bob not-delivered", "cem no-active-device");
  // It ends later.
  dispatch.simulators.script([]);
  dispatch.pass(3_600_000);
  await dispatch.final(projectId, id);
  await eventually(async () => {
    const all = await readPublished(dispatch.broker, `push.evt.v1.${projectId}.>`);
    expect(all.filter(({ subject }) => subject.endsWith("notification.completed"))).toHaveLength(1);
    expect((await stored(id))?.outbox).toBeUndefined();
  });
  expect(await eventsOf(id)).toHaveLength(3);
});

test("waits while analytics is unavailable or has not read all opens, and counts those", async () => {
  const [phone] = reach("ann");
  const ids = [await send(["user:ann"]), await send(["user:ann"])];
  for (const id of ids) await dispatch.final(projectId, id);
  isStored = () => {
    throw new HeraldError("service-unavailable", "away");
  };
  dispatch.pass(minute + 1_000);
  await eventually(() => expect(asked).toBeGreaterThan(0));
  isStored = () => false;
  asked = 0;
  dispatch.pass(minute + 1_000);
  await eventually(() => expect(asked).toBeGreaterThan(1));
  opened.add(phone ?? "dev_");
  isStored = () => true;
  dispatch.pass(minute + 1_000);
  await othersHaveEvents();
  for (const id of ids) {
    expect(await eventsOf(id)).toEqual([]);
    expect((await stored(id))?.escalation).toBeUndefined();
  }
});

test("a cancelled one has no event, and a change of its time moves it", async () => {
  reach("ann");
  const inAnHour = new Date(dispatch.now().getTime() + 3_600_000);
  const [cancelled, moved] = [await schedule(inAnHour), await schedule(inAnHour)];
  for (const id of [cancelled, moved]) await eventually(async () => expect((await stored(id))?.step).toBe("scheduled"));
  await dispatch.cancel(projectId, cancelled);
  const later = new Date(inAnHour.getTime() + 3_600_000);
  const change = (fields: object) =>
    sendRequest(dispatch.bus, notificationRequests.change, { projectId, notificationId: moved, change: fields });
  await change({ send_at: later.toISOString() });
  const local = { send_at: later.toISOString().slice(0, 19), time_zone: "device", past: "now" };
  await expect(change(local)).rejects.toMatchObject({
    messages: ['notification.escalate_after: cannot be combined with `time_zone: "device"`, which has no one start'],
  });
  expect((await stored(moved))?.escalation?.at).toEqual(new Date(later.getTime() + minute));
  dispatch.pass(3_600_000 + 3 * minute);
  await othersHaveEvents();
  for (const id of [cancelled, moved]) expect(await eventsOf(id)).toEqual([]);
});

test("a proposal counts from its approval", async () => {
  const proposal = { limit: 1_000, devices: 5_000, sender: { id: newTokenId(new Date()) } };
  const id = await dispatch.send(projectId, { proposal }, { targets: ["user:ann"], escalate_after: 600 });
  await eventually(async () => expect((await stored(id))?.step).toBe("approval"));
  dispatch.pass(3_600_000);
  const at = dispatch.now().getTime();
  const by = { id: newTokenId(new Date()), name: "Maria Lopez" };
  await sendRequest(dispatch.bus, notificationRequests.approve, { projectId, notificationId: id, by });
  expect((await stored(id))?.escalation?.at.getTime()).toBeGreaterThanOrEqual(at + 600_000);
  await dispatch.partition(projectId, id, [[device("00", { userId: "ann" })]], { lane: "direct" });
  await dispatch.final(projectId, id);
  await othersHaveEvents();
  expect(await eventsOf(id)).toEqual([]);
  dispatch.pass(600_000);
  await hasEvents(id, "ann unopened");
});

test("an erased user has no event, nor their device; the others have theirs", async () => {
  reach("ann");
  reach("eve");
  const id = await send(["user:ann", "user:eve"]);
  await dispatch.final(projectId, id);
  const db = dispatch.database.client.db(dispatch.database.name);
  const eraser = createUserEraser(db, createSmallSendStore(db), createRecipientStore(db));
  await eraser.erase({ projectId, key: userKey(projectId, "eve"), at: dispatch.now() });
  dispatch.pass(minute + 1_000);
  await hasEvents(id, "ann unopened");
});
