import { handleRequest, publish, type RequestListener, sendRequest } from "@herald/bus";
import {
  audienceRequests,
  type DeviceId,
  ExpandedV1,
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
import { createEscalationStore } from "../src/stores/escalation-store.ts";
import { notificationCollection } from "../src/stores/notification-document.ts";
import { createRecipientStore } from "../src/stores/recipient-store.ts";
import { createSmallSendStore } from "../src/stores/small-send-store.ts";
import { type DispatchTest, device, startDispatchTest } from "./dispatch-fixture.ts";
import { handleResolveSends, type RegistryFixture } from "./registry-fixture.ts";

const minute = 60_000;
/** Longer than the shortest time, or than it takes until the next look. */
const untilDue = 70_000;

let dispatch: DispatchTest;
let registry: RegistryFixture;
let answering: RequestListener[];
/** Devices that opened what they got. */
const opened = new Set<DeviceId>();
/** How analytics answers whether all opens are stored. */
let isStored: () => boolean;
/** What happens before it says which devices opened. */
let beforeOpens: () => Promise<unknown>;
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
      await beforeOpens();
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
  beforeOpens = async () => undefined;
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
const stored = (id: NotificationId) =>
  notificationCollection(dispatch.database.client.db(dispatch.database.name)).findOne({ _id: id });
/** Waits until all of its events are published. */
const isOver = (id: NotificationId) =>
  eventually(async () => {
    const { escalation, outbox } = (await stored(id)) ?? {};
    expect({ escalation, outbox }).toEqual({});
  });

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
  dispatch.pass(untilDue);
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
  await isOver(id);
  expect(await eventsOf(id)).toHaveLength(7);
  expect((await stored(later))?.escalation).toBeDefined();
});

test("waits until all batches have come", async () => {
  const id = await dispatch.send(projectId, {}, { targets: ["user:ann", "user:bob"], escalate_after: 60 });
  const [ann, bob] = [device("00", { userId: "ann" }), device("00", { userId: "bob" })];
  await dispatch.partition(projectId, id, [[ann]], { lane: "direct", of: 3 });
  const expanded = { projectId, notificationId: id, n: 0, batches: 2, devices: 2, unmatched: [] };
  await publish(dispatch.bus, ExpandedV1, expanded, { id: `${id}/expanded` });
  await eventually(async () => expect((await stored(id))?.expanded).toBeDefined());
  await eventually(async () => expect((await dispatch.get(projectId, id)).counts).toMatchObject({ accepted: 1 }));
  const store = createEscalationStore(dispatch.database.client.db(dispatch.database.name));
  // Without passing time: a sweep would have what is missing expanded again.
  const { taken } = await store.takeDue(new Date(dispatch.now().getTime() + untilDue));
  const due = taken.find(({ _id }) => _id === id);
  if (!due) throw new Error("it is not due");
  const nobody = async () => new Set<string>();
  expect(await store.unopened(due, nobody)).toBeUndefined();
  await dispatch.partition(projectId, id, [[bob]], { lane: "direct", from: 1, of: 3 });
  await dispatch.final(projectId, id);
  expect(await store.unopened(due, nobody)).toEqual([
    { user_id: "ann", reason: "unopened" },
    { user_id: "bob", reason: "unopened" },
  ]);
});

test("counts from the real beginning, where that is late", async () => {
  const inAMinute = new Date(dispatch.now().getTime() + minute);
  const id = await schedule(inAMinute);
  await eventually(async () => expect((await stored(id))?.step).toBe("scheduled"));
  dispatch.pass(2 * 3_600_000);
  const at = dispatch.now().getTime();
  await dispatch.partition(projectId, id, [[device("00", { userId: "ann" })]], { lane: "direct" });
  await dispatch.final(projectId, id);
  expect((await stored(id))?.escalation?.at.getTime()).toBeGreaterThanOrEqual(at + minute);
  dispatch.pass(untilDue);
  await hasEvents(id, "ann unopened");
});

test("one that cannot be read holds up no other", async () => {
  reach("ann");
  const [broken, id] = [await send(["user:ann"]), await send(["user:ann"])];
  for (const one of [broken, id]) await dispatch.final(projectId, one);
  const all = notificationCollection(dispatch.database.client.db(dispatch.database.name));
  await all.updateOne({ _id: broken }, { $set: { content: "{" } });
  dispatch.pass(untilDue);
  await hasEvents(id, "ann unopened");
  await all.deleteOne({ _id: broken });
});

test("the batches of a large send are read, and what waits for its provider is not delivered", async () => {
  const id = await dispatch.send(projectId, {}, { targets: ["user:ann", "user:bob", "user:cem"], escalate_after: 60 });
  dispatch.simulators.script([
    { provider: "apns", tokenPrefix: "503", status: 503, headers: { "retry-after": "600" } },
  ]);
  const [ann, bob] = [device("00", { userId: "ann" }), device("503", { userId: "bob" })];
  await dispatch.partition(projectId, id, [[ann], [bob]], { lane: "direct" });
  await eventually(async () => expect((await dispatch.get(projectId, id)).counts).toMatchObject({ accepted: 1 }));
  dispatch.pass(untilDue);
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
  dispatch.pass(untilDue);
  await eventually(() => expect(asked).toBeGreaterThan(0));
  isStored = () => false;
  asked = 0;
  dispatch.pass(untilDue);
  await eventually(() => expect(asked).toBeGreaterThan(1));
  opened.add(phone ?? "dev_");
  isStored = () => true;
  dispatch.pass(untilDue);
  for (const id of ids) {
    await isOver(id);
    expect(await eventsOf(id)).toEqual([]);
  }
});

test("a cancelled one has no events, also when it is cancelled while analytics answers", async () => {
  const inAnHour = new Date(dispatch.now().getTime() + 3_600_000);
  const before = await schedule(inAnHour);
  await eventually(async () => expect((await stored(before))?.step).toBe("scheduled"));
  await dispatch.cancel(projectId, before);
  dispatch.simulators.script([
    { provider: "apns", tokenPrefix: "503", status: 503, headers: { "retry-after": "600" } },
  ]);
  const halfway = await dispatch.send(projectId, {}, { targets: ["user:ann", "user:bob"], escalate_after: 60 });
  await dispatch.partition(projectId, halfway, [[device("503", { userId: "ann" })]], { lane: "direct" });
  await eventually(async () => expect((await stored(halfway))?.step).toBe("delivering"));
  beforeOpens = () => dispatch.cancel(projectId, halfway);
  dispatch.pass(3_600_000 + untilDue);
  for (const id of [before, halfway])
    await eventually(async () => expect((await stored(id))?.status).toBe("cancelled"));
  dispatch.pass(3_600_000);
  for (const id of [before, halfway]) {
    await isOver(id);
    expect(await eventsOf(id)).toEqual([]);
  }
});

test("a change of its time moves its escalation", async () => {
  reach("ann");
  const inAnHour = new Date(dispatch.now().getTime() + 3_600_000);
  const moved = await schedule(inAnHour);
  await eventually(async () => expect((await stored(moved))?.step).toBe("scheduled"));
  const later = new Date(inAnHour.getTime() + 3_600_000);
  const change = (fields: object) =>
    sendRequest(dispatch.bus, notificationRequests.change, { projectId, notificationId: moved, change: fields });
  await change({ send_at: later.toISOString() });
  const local = { send_at: later.toISOString().slice(0, 19), time_zone: "device", past: "now" };
  await expect(change(local)).rejects.toMatchObject({
    messages: ['notification.escalate_after: cannot be combined with `time_zone: "device"`, which has no one start'],
  });
  const firstLook = (await stored(moved))?.escalation?.nextAt;
  dispatch.pass(3_600_000 + untilDue);
  await eventually(async () => expect((await stored(moved))?.escalation?.nextAt).not.toEqual(firstLook));
  dispatch.pass(3_600_000);
  await dispatch.partition(projectId, moved, [[device("00", { userId: "ann" })]], { lane: "direct" });
  await dispatch.final(projectId, moved);
  expect(await eventsOf(moved)).toEqual([]);
  dispatch.pass(untilDue);
  await hasEvents(moved, "ann unopened");
});

test("a proposal counts from its approval", async () => {
  const proposal = { limit: 1_000, devices: 5_000, sender: { id: newTokenId(new Date()) } };
  const id = await dispatch.send(projectId, { proposal }, { targets: ["user:ann"], escalate_after: 600 });
  await eventually(async () => expect((await stored(id))?.step).toBe("approval"));
  dispatch.pass(3_600_000);
  const at = dispatch.now().getTime();
  const by = { id: newTokenId(new Date()), name: "Maria Lopez" };
  await sendRequest(dispatch.bus, notificationRequests.approve, { projectId, notificationId: id, by });
  await dispatch.partition(projectId, id, [[device("00", { userId: "ann" })]], { lane: "direct" });
  await dispatch.final(projectId, id);
  expect((await stored(id))?.escalation?.at.getTime()).toBeGreaterThanOrEqual(at + 600_000);
  dispatch.pass(600_000 + untilDue);
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
  dispatch.pass(untilDue);
  await hasEvents(id, "ann unopened");
});
