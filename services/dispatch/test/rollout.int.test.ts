import { handleRequest, lastMessage, publish, type RequestListener, sendRequest } from "@herald/bus";
import {
  audienceRequests,
  DeliverBatchV1,
  ExpandedV1,
  ExpandV1,
  type NotificationId,
  NotificationPausedV1,
  notificationRequests,
  type ProjectId,
  pagesOfExpansion,
  type Recipient,
  type Rollout,
} from "@herald/contracts";
import { eventually, operateBroker } from "@herald/testing";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { notificationCollection } from "../src/stores/notification-document.ts";
import { type DispatchTest, day, devices, startDispatchTest } from "./dispatch-fixture.ts";

const by = { id: "opr_06bq4ghm31tz5d2ns8y7k9w0ac", name: "Maria Lopez" } as const;
const minute = 60_000;

let dispatch: DispatchTest;
let answering: RequestListener;
/** The audience, as registry estimates it. */
let audience: number;
let projectId: ProjectId;
beforeAll(async () => {
  dispatch = await startDispatchTest();
  answering = handleRequest(dispatch.bus, audienceRequests.size, async () => ({ devices: audience }));
});
afterAll(async () => {
  await answering.stop();
  await dispatch.stop();
});
beforeEach(async () => {
  audience = 400;
  projectId = await dispatch.project();
});
afterEach(() => {
  dispatch.simulators.script([]);
  dispatch.clock.ahead = 0;
  dispatch.startClock();
});

const start = (rollout: Rollout, ttl = 3_600) =>
  dispatch.send(projectId, { expiresAt: new Date(dispatch.now().getTime() + 2 * day).toISOString() }, { rollout, ttl });

const shown = async (id: NotificationId) => (await dispatch.get(projectId, id)).rollout;
const becomes = (id: NotificationId, expected: object) =>
  eventually(async () => expect(await shown(id)).toMatchObject(expected));

const commandOf = (id: NotificationId, n: number) =>
  eventually(async () => {
    const subject = ExpandV1.subject({ projectId, notificationId: id, page: n * pagesOfExpansion } as ExpandV1);
    const found = await lastMessage(dispatch.bus, "PUSH_CMD", subject, ExpandV1);
    if (!found) throw new Error(`part ${n} is not expanded`);
    return found.data;
  });

type Partition = {
  readonly repeat?: string;
  /** Runs before registry says that it is done. */
  readonly before?: () => Promise<unknown>;
};

/** Partitions a part as registry does: one batch of these devices. */
const partition = async (
  id: NotificationId,
  n: number,
  of: readonly Recipient[],
  { repeat = "", before }: Partition = {},
) => {
  const { page, expiresAt, expansion } = await commandOf(id, n);
  const common = { projectId, notificationId: id };
  const batch: DeliverBatchV1 = {
    ...{ ...common, batchId: `${id}/${page}/0`, lane: "broadcast", platform: "ios", expiresAt },
    devices: [...of],
  };
  if (of.length > 0) await publish(dispatch.bus, DeliverBatchV1, batch, { id: `${batch.batchId}${repeat}` });
  await before?.();
  const done = { ...common, batches: of.length > 0 ? 1 : 0, devices: of.length, unmatched: [], n };
  await publish(dispatch.bus, ExpandedV1, done, { id: `${id}/expanded/${n}${repeat}` });
  return { ...expansion.buckets, expiresAt };
};

const outcomes = (id: NotificationId, count: number) => becomes(id, { outcomes: count });
const resume = (id: NotificationId) =>
  sendRequest(dispatch.bus, notificationRequests.resume, { projectId, notificationId: id, by });

test("a canary comes first, then the others part after part, each for its own time to live", async () => {
  const id = await start({ canary: { share: 0.25, wait: "10m" }, per_minute: 300 });
  const parts = [await partition(id, 0, devices(100))];
  await becomes(id, { phase: "waiting", audience: 400, released: 100, outcomes: 100, failed: 0, rate: 10 });
  const { next_at: next = "" } = (await shown(id)) ?? {};
  dispatch.pass(9 * minute);
  expect(await shown(id)).toMatchObject({ phase: "waiting", next_at: next });
  dispatch.pass(minute);
  // 300 devices a minute: 50 in ten seconds.
  for (let n = 1; n <= 6; n++) {
    parts.push(await partition(id, n, devices(50)));
    await outcomes(id, 100 + n * 50);
    if (n < 6) await becomes(id, { phase: "rolling", released: 100 + n * 50 });
    dispatch.pass(10_000);
  }
  const [first, second] = parts;
  expect(Date.parse(second?.expiresAt ?? "") - Date.parse(first?.expiresAt ?? "")).toBeGreaterThanOrEqual(10 * minute);
  const widths = parts.map(({ from = 0, to = -1 }) => to - from + 1);
  // One part ends at the end of the ring, unless the rollout begins so that none does.
  expect(widths[0]).toBe(1_024);
  expect(Math.max(...widths.slice(1))).toBe(512);
  const left = 4_096 - widths.reduce((sum, width) => sum + width, 0);
  if (left > 0) await partition(id, 7, devices(1));
  const final = await dispatch.final(projectId, id);
  expect(final).toMatchObject({ status: "completed", rollout: { phase: "done" } });
  expect(final.rollout?.released).toBe(final.counts.devices);
});

test("it stops by itself, once, when too many devices failed, and goes on when it is resumed", async () => {
  dispatch.simulators.script([{ provider: "apns", tokenPrefix: "bad0", status: 413 }]);
  const id = await start({ canary: { share: 0.25 }, stop_if: { failed: 0.05 } });
  await partition(id, 0, [...devices(94), ...devices(6, "bad0")]);
  await outcomes(id, 100);
  dispatch.pass(11 * minute);
  await eventually(async () => expect(await dispatch.get(projectId, id)).toMatchObject({ status: "paused" }));
  const { paused, rollout } = await dispatch.get(projectId, id);
  expect(paused).toEqual({ at: expect.any(String), reason: "6 of 100 devices failed: 6 %, more than 5 %" });
  expect(rollout).toMatchObject({ released: 100, outcomes: 100, failed: 6 });
  await eventually(async () =>
    expect(await dispatch.lastEvent(projectId, NotificationPausedV1)).toMatchObject({
      ...{ notification_id: id, reason: "failures", detail: paused?.reason },
    }),
  );
  await resume(id);
  await partition(id, 1, devices(300));
  await becomes(id, { released: 400 });
});

test("with a limit of failures alone, each part begins when the one before it is released", async () => {
  audience = 3_000;
  // So neither the broker's clock nor a sweep begins one.
  dispatch.pass(60 * minute);
  dispatch.stopClock();
  const id = await start({ stop_if: { failed: 0.05 } });
  for (let n = 0; n < 3; n++) await partition(id, n, devices(100), { before: () => outcomes(id, (n + 1) * 100) });
  await becomes(id, { released: 300 });
});

test("it is held while its devices wait, says why, and goes on by itself", async () => {
  dispatch.simulators.script([{ provider: "apns", tokenPrefix: "503", status: 503, headers: { "retry-after": "60" } }]);
  const id = await start({ canary: { share: 0.25, wait: "1m" }, stop_if: { failed: 0.05 } });
  await partition(id, 0, [...devices(30), ...devices(70, "503")]);
  await outcomes(id, 30);
  dispatch.simulators.script([]);
  dispatch.pass(50_000);
  dispatch.pass(11_000);
  await partition(id, 1, devices(300));
  await becomes(id, { released: 400 });
});

test("its speed may be lowered while it is sent, and never raised", async () => {
  const change = (perMinute: number) =>
    sendRequest(dispatch.bus, notificationRequests.change, {
      ...{ projectId, notificationId: id, change: { rollout: { per_minute: perMinute } } },
    });
  const id = await start({ per_minute: 600 });
  await partition(id, 0, devices(100));
  await becomes(id, { released: 100 });
  expect(await change(60)).toMatchObject({ rollout: { per_minute: 60, released: 100 } });
  await expect(change(61)).rejects.toThrow("notification.rollout.per_minute: must be from 1 to 60: it may be lowered");
  dispatch.pass(10_000);
  await partition(id, 1, devices(100));
  await becomes(id, { rate: 59 });
});

/** Takes the commands from the broker, and lets the sweep find that messages are missing. */
const loseCommands = async (id: NotificationId): Promise<void> => {
  const hands = await operateBroker(dispatch.broker);
  await hands.purge("PUSH_CMD");
  await hands.close();
  const notifications = notificationCollection(dispatch.database.client.db(dispatch.database.name));
  await notifications.updateOne({ _id: id }, { $set: { nextAt: new Date(0) } });
};

test("a command that the broker lost is repeated", async () => {
  const id = await start({ per_minute: 600 });
  await partition(id, 0, devices(100));
  await outcomes(id, 100);
  dispatch.pass(10_000);
  await commandOf(id, 1);
  await loseCommands(id);
  await partition(id, 1, devices(100));
  await becomes(id, { released: 200 });
});

test("batches that the broker lost are sent once all parts are released again, at once", async () => {
  const id = await start({ canary: { share: 0.5, wait: "10m" } });
  const lost = await commandOf(id, 0);
  const done = { projectId, notificationId: id, batches: 1, devices: 200, unmatched: ["all"], n: 0 };
  await publish(dispatch.bus, ExpandedV1, done, { id: `${id}/expanded/0` });
  await becomes(id, { phase: "waiting", released: 200 });
  // The other part may have devices of the target.
  expect((await dispatch.get(projectId, id)).unmatched).toEqual([]);
  dispatch.pass(10 * minute);
  const others = devices(200);
  let last = 1;
  const rest = await partition(id, 1, others);
  if (rest.to === 4_095 && lost.expansion.buckets?.from !== 0) {
    last = 2;
    await partition(id, 2, []);
  }
  await becomes(id, { phase: "done" });
  await outcomes(id, 200);
  await loseCommands(id);
  await becomes(id, { phase: "rolling" });
  await partition(id, 0, devices(200), { repeat: "/again" });
  for (let n = 1; n <= last; n++) await partition(id, n, n === 1 ? others : [], { repeat: "/again" });
  const { counts } = await dispatch.final(projectId, id);
  expect(counts).toMatchObject({ devices: 400, accepted: 400 });
  expect(dispatch.simulators.pushes().filter(({ token }) => others.some((one) => one.token === token))).toHaveLength(
    200,
  );
});

test("batches that the broker lost do not hold it for ever: its parts are released again", async () => {
  const id = await start({ canary: { share: 0.5, wait: "1m" }, stop_if: { failed: 0.05 } });
  await commandOf(id, 0);
  const done = { projectId, notificationId: id, batches: 1, devices: 200, unmatched: [], n: 0 };
  await publish(dispatch.bus, ExpandedV1, done, { id: `${id}/expanded/0` });
  await becomes(id, { phase: "waiting", released: 200 });
  dispatch.pass(minute);
  await becomes(id, { phase: "held", held: "few-outcomes" });
  await operateBroker(dispatch.broker).then(async (hands) => {
    await hands.purge("PUSH_CMD");
    await hands.close();
  });
  dispatch.pass(minute);
  await partition(id, 0, devices(200), { repeat: "/again" });
  await outcomes(id, 200);
  await becomes(id, { phase: "waiting" });
  dispatch.pass(minute);
  await partition(id, 1, devices(200));
  await becomes(id, { released: 400 });
});
