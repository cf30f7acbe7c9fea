import { handleRequest, lastMessage, publish, type RequestListener } from "@herald/bus";
import {
  audienceRequests,
  DeliverBatchV1,
  ExpandedV1,
  ExpandV1,
  type LocalTime,
  type NotificationId,
  newDeviceId,
  type ProjectId,
  pagesOfExpansion,
  type Recipient,
} from "@herald/contracts";
import { eventually, operateBroker } from "@herald/testing";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { notificationCollection } from "../src/stores/notification-document.ts";
import { type DispatchTest, day, device, devices, startDispatchTest } from "./dispatch-fixture.ts";

const hour = 3_600_000;

let dispatch: DispatchTest;
let answering: RequestListener;
/** The zones of the project's devices, as registry answers them. */
let zones: string[] = [];
let projectId: ProjectId;
beforeAll(async () => {
  dispatch = await startDispatchTest();
  answering = handleRequest(dispatch.bus, audienceRequests.zones, async () => ({ zones }));
});
afterAll(async () => {
  await answering.stop();
  await dispatch.stop();
});
beforeEach(async () => {
  projectId = await dispatch.project();
  zones = ["none", "Asia/Tokyo", "Europe/Berlin", "America/New_York"];
});
afterEach(() => {
  dispatch.clock.ahead = 0;
});

/** Sends at a local time that clocks in UTC show after `ms`. */
const sendLocal = (ms: number, local: Partial<LocalTime> = {}) => {
  const now = dispatch.now();
  const at = new Date(now.getTime() + ms).toISOString().slice(0, 19);
  return dispatch.send(
    projectId,
    {
      sendAt: now.toISOString(),
      expiresAt: new Date(now.getTime() + 3 * day).toISOString(),
      local: { at, zone: "UTC", since: now.toISOString(), ttlMs: 2 * hour, ...local },
    },
    { send_at: at, time_zone: "device" },
  );
};

const scheduleOf = async (id: NotificationId) => {
  const { schedule = [], status } = await dispatch.get(projectId, id);
  return { status, waves: schedule.map(({ status, time_zones: of, devices }) => [of.join(" "), status, devices]) };
};

const becomes = (id: NotificationId, expected: Awaited<ReturnType<typeof scheduleOf>>) =>
  eventually(async () => expect(await scheduleOf(id)).toEqual(expected));

/** Before their time to live ends. */
const accepted = (id: NotificationId, count: number) =>
  eventually(async () => expect((await dispatch.get(projectId, id)).counts).toMatchObject({ accepted: count }));

/** The command to expand a wave. */
const commandOf = (id: NotificationId, n: number) =>
  eventually(async () => {
    const subject = ExpandV1.subject({ projectId, notificationId: id, page: n * pagesOfExpansion } as ExpandV1);
    const found = await lastMessage(dispatch.bus, "PUSH_CMD", subject, ExpandV1);
    if (!found) throw new Error(`wave ${n} is not expanded`);
    return found.data;
  });

const publishExpanded = (id: NotificationId, n: number, batches: number, count: number, repeat = "") =>
  publish(
    dispatch.bus,
    ExpandedV1,
    { projectId, notificationId: id, batches, devices: count, unmatched: [], n },
    { id: `${id}/expanded/${n}${repeat}` },
  );

/** Partitions a wave as registry does: one batch of these devices, if there are any. */
const partition = async (id: NotificationId, n: number, of: readonly Recipient[]) => {
  const command = await commandOf(id, n);
  const batch: DeliverBatchV1 = {
    batchId: `${id}/${command.page}/0`,
    projectId,
    notificationId: id,
    lane: "broadcast",
    platform: "ios",
    expiresAt: command.expiresAt,
    ...(command.expansion.skip !== undefined && { skip: command.expansion.skip }),
    devices: [...of],
  };
  if (of.length > 0) await publish(dispatch.bus, DeliverBatchV1, batch, { id: batch.batchId });
  await publishExpanded(id, n, of.length > 0 ? 1 : 0, of.length);
  return command;
};

/** Takes the commands from the broker, and lets the sweep find that batches are missing. */
const loseCommands = async (id: NotificationId): Promise<void> => {
  const hands = await operateBroker(dispatch.broker);
  await hands.purge("PUSH_CMD");
  await hands.close();
  const notifications = notificationCollection(dispatch.database.client.db(dispatch.database.name));
  await notifications.updateOne({ _id: id }, { $set: { nextAt: new Date(0) } });
};

test("each wave begins at its time, and the last one ends the notification", async () => {
  const id = await sendLocal(10 * hour);
  const [tokyo, berlin, none, newYork] = ["Asia/Tokyo", "Europe/Berlin", "none", "America/New_York"];
  await becomes(id, {
    status: "scheduled",
    waves: [tokyo, berlin, none, newYork].map((zone) => [zone, "scheduled", undefined]),
  });
  dispatch.pass(hour);
  const first = await partition(id, 0, devices(2));
  expect(first).toMatchObject({ page: 0, expansion: { n: 0, zones: [tokyo] } });
  const { schedule = [] } = await dispatch.get(projectId, id);
  expect(Date.parse(first.expiresAt) - Date.parse(schedule[0]?.at ?? "")).toBe(2 * hour);
  await becomes(id, {
    status: "sending",
    waves: [
      [tokyo, "sent", 2],
      [berlin, "scheduled", undefined],
      [none, "scheduled", undefined],
      [newYork, "scheduled", undefined],
    ],
  });
  await accepted(id, 2);

  dispatch.pass(9 * hour);
  for (const [n, count] of [
    [1, 3],
    [2, 0],
  ] as const) {
    const command = await partition(id, n, devices(count));
    expect(command.page).toBe(n * pagesOfExpansion);
  }
  await becomes(id, {
    status: "sending",
    waves: [
      [tokyo, "sent", 2],
      [berlin, "sent", 3],
      [none, "sent", 0],
      [newYork, "scheduled", undefined],
    ],
  });
  await accepted(id, 5);
  dispatch.pass(5 * hour);
  await partition(id, 3, devices(1));
  const final = await dispatch.final(projectId, id);
  expect(final).toMatchObject({ status: "completed", counts: { devices: 6, accepted: 6 } });
  expect(final.schedule?.map((wave) => wave.devices)).toEqual([2, 3, 0, 1]);
});

test("repeats of messages of an earlier wave change nothing", async () => {
  zones = ["Asia/Tokyo", "none"];
  const id = await sendLocal(10 * hour);
  await becomes(id, {
    status: "scheduled",
    waves: [
      ["Asia/Tokyo", "scheduled", undefined],
      ["none", "scheduled", undefined],
    ],
  });
  dispatch.pass(hour);
  await partition(id, 0, devices(1));
  await publishExpanded(id, 0, 7, 7, "/again");
  await becomes(id, {
    status: "sending",
    waves: [
      ["Asia/Tokyo", "sent", 1],
      ["none", "scheduled", undefined],
    ],
  });
  await accepted(id, 1);
  dispatch.pass(9 * hour);
  await commandOf(id, 1);
  await publishExpanded(id, 0, 7, 7, "/once more");
  await partition(id, 1, devices(1));
  await publishExpanded(id, 1, 7, 7, "/again");
  expect(await dispatch.final(projectId, id)).toMatchObject({
    status: "completed",
    counts: { devices: 2, accepted: 2 },
  });
});

test("a cancel between waves ends it with the devices that were addressed", async () => {
  const id = await sendLocal(10 * hour);
  await eventually(async () => expect((await scheduleOf(id)).waves).toHaveLength(4));
  dispatch.pass(hour);
  await partition(id, 0, devices(2));
  await eventually(async () => expect((await scheduleOf(id)).waves[0]).toEqual(["Asia/Tokyo", "sent", 2]));
  await accepted(id, 2);
  await dispatch.cancel(projectId, id);
  const final = await dispatch.final(projectId, id);
  expect(final).toMatchObject({ status: "cancelled", counts: { devices: 2, accepted: 2, cancelled: 0 } });
  expect(final.schedule).toHaveLength(1);
  dispatch.pass(day);
  expect(await dispatch.get(projectId, id)).toEqual(final);
});

test("devices whose clocks have passed the time are skipped, or sent to now or tomorrow", async () => {
  zones = ["Asia/Tokyo", "none"];
  const skipped = await sendLocal(hour, { past: "skip" });
  const { expansion } = await partition(skipped, 0, [device()]);
  expect(expansion).toEqual({ n: 0, zones: ["Asia/Tokyo"], skip: "past-local-time" });
  dispatch.pass(hour);
  await partition(skipped, 1, [device()]);
  const final = await dispatch.final(projectId, skipped);
  expect(final).toMatchObject({ counts: { devices: 2, accepted: 1, skipped: 1 }, skips: { "past-local-time": 1 } });
  expect(final.schedule?.map(({ status }) => status)).toEqual(["skipped", "sent"]);
  const reasons = (await dispatch.deliveries(projectId, skipped)).map(({ reason }) => reason ?? "sent");
  expect(reasons.sort()).toEqual(["past-local-time", "sent"]);

  const now = await sendLocal(hour, { past: "now" });
  expect((await commandOf(now, 0)).expansion).toEqual({ n: 0, zones: ["Asia/Tokyo"] });

  const tomorrow = await sendLocal(hour, { past: "tomorrow" });
  await eventually(async () =>
    expect((await scheduleOf(tomorrow)).waves.map(([of]) => of)).toEqual(["none", "Asia/Tokyo"]),
  );
  const [utc, tokyo] = (await dispatch.get(projectId, tomorrow)).schedule ?? [];
  expect(Date.parse(tokyo?.at ?? "") - Date.parse(utc?.at ?? "")).toBe(15 * hour);
});

test("a zone that a device brings between two waves belongs to the next one", async () => {
  zones = ["Asia/Tokyo", "none"];
  const id = await sendLocal(10 * hour);
  await eventually(async () => expect((await scheduleOf(id)).waves).toHaveLength(2));
  dispatch.pass(hour);
  await partition(id, 0, [device()]);
  zones = ["Asia/Tokyo", "none", "Europe/Berlin", "America/New_York"];
  dispatch.pass(9 * hour);
  expect((await partition(id, 1, [])).expansion).toEqual({ n: 1, zones: ["Europe/Berlin", "none"] });
  await eventually(async () =>
    expect((await scheduleOf(id)).waves[2]).toEqual(["America/New_York", "scheduled", undefined]),
  );
});

test("a wave that is three days late does not take place", async () => {
  zones = ["Asia/Tokyo", "none"];
  const id = await sendLocal(10 * hour);
  await eventually(async () => expect((await scheduleOf(id)).waves).toHaveLength(2));
  dispatch.pass(hour);
  await partition(id, 0, [device()]);
  await accepted(id, 1);
  await eventually(async () => expect((await scheduleOf(id)).waves[0]).toEqual(["Asia/Tokyo", "sent", 1]));
  dispatch.pass(3 * day + 1);
  expect(await dispatch.final(projectId, id)).toMatchObject({ status: "completed", counts: { devices: 1 } });
});

test("devices of a wave that expired count as expired", async () => {
  zones = ["none"];
  const id = await sendLocal(hour);
  await eventually(async () => expect((await scheduleOf(id)).waves).toHaveLength(1));
  dispatch.pass(4 * hour);
  const late: Recipient = { ...device(), id: newDeviceId(new Date()) };
  await partition(id, 0, [late]);
  expect(await dispatch.final(projectId, id)).toMatchObject({ status: "expired", counts: { expired: 1 } });
});

test("when batches of several waves were lost, each wave is expanded again, in turn", async () => {
  zones = ["Asia/Tokyo", "none"];
  const id = await sendLocal(10 * hour);
  await eventually(async () => expect((await scheduleOf(id)).waves).toHaveLength(2));
  dispatch.pass(hour);
  const [first, second] = [device(), device()];
  // Registry has said what it found, and the broker has lost the batches.
  await commandOf(id, 0);
  await publishExpanded(id, 0, 1, 1, "/lost");
  await eventually(async () => expect((await scheduleOf(id)).waves[0]).toEqual(["Asia/Tokyo", "sent", 1]));
  dispatch.pass(9 * hour);
  await commandOf(id, 1);
  await publishExpanded(id, 1, 1, 1, "/lost");
  await eventually(async () => expect((await scheduleOf(id)).waves[1]).toEqual(["none", "sent", 1]));
  await loseCommands(id);
  await partition(id, 0, [first]);
  await partition(id, 1, [second]);
  expect(await dispatch.final(projectId, id)).toMatchObject({
    counts: { devices: 2 },
    schedule: [{ devices: 1 }, { devices: 1 }],
  });
});

test("a cancelled notification whose batches were lost ends with every device that its waves had addressed", async () => {
  zones = ["Asia/Tokyo", "none"];
  const id = await sendLocal(10 * hour);
  await eventually(async () => expect((await scheduleOf(id)).waves).toHaveLength(2));
  dispatch.pass(hour);
  await partition(id, 0, [device()]);
  await accepted(id, 1);
  dispatch.pass(9 * hour);
  await commandOf(id, 1);
  await publishExpanded(id, 1, 1, 1, "/lost");
  await eventually(async () => expect((await scheduleOf(id)).waves[1]).toEqual(["none", "sent", 1]));
  await dispatch.cancel(projectId, id);
  await loseCommands(id);
  await commandOf(id, 0);
  await publishExpanded(id, 0, 1, 1, "/again");
  await partition(id, 1, [device()]);
  expect(await dispatch.final(projectId, id)).toMatchObject({ status: "cancelled", counts: { devices: 2 } });
});

test("a wave that took place stays in the plan when waves before it are expanded again", async () => {
  zones = ["Asia/Tokyo", "Europe/Berlin", "none"];
  const id = await sendLocal(10 * hour);
  await eventually(async () => expect((await scheduleOf(id)).waves).toHaveLength(3));
  dispatch.pass(hour);
  await commandOf(id, 0);
  await publishExpanded(id, 0, 1, 1, "/lost");
  await eventually(async () => expect((await scheduleOf(id)).waves[0]).toEqual(["Asia/Tokyo", "sent", 1]));
  dispatch.pass(9 * hour);
  for (const n of [1, 2]) await partition(id, n, [device()]);
  await accepted(id, 2);
  // The only device of the last wave has moved.
  zones = ["Asia/Tokyo", "Europe/Berlin"];
  await loseCommands(id);
  await partition(id, 0, [device()]);
  for (const n of [1, 2]) {
    await commandOf(id, n);
    await publishExpanded(id, n, 1, 1, "/again");
  }
  const { counts, schedule = [] } = await dispatch.final(projectId, id);
  expect(counts).toMatchObject({ devices: 3 });
  expect(schedule.map(({ devices }) => devices)).toEqual([1, 1, 1]);
});
