import { randomUUID } from "node:crypto";
import { publish, sendRequest } from "@herald/bus";
import {
  CountBacklog,
  DrainBacklogV1,
  type GroupedSend,
  type NotificationId,
  newNotificationIds,
  type ProjectId,
  type Recipient,
} from "@herald/contracts";
import { eventually, readStream } from "@herald/testing";
import { expect, test } from "vitest";
import { notificationCollection } from "../src/stores/notification-document.ts";
import { device, devices } from "./dispatch-fixture.ts";
import { useSendGroups } from "./send-groups-fixture.ts";

/** 15 sends of one project are delivered at a time, about 5 more wait in memory, and all others are in its backlog. */
const smallSends = { total: 20, waitingBytes: 2_000 };

const { dispatch, sendsOf, putAlone, acceptAll, eventsOf, pushesTo } = useSendGroups({}, { smallSends });

const documents = () => notificationCollection(dispatch().database.client.db(dispatch().database.name));

const waiting = async (projectId: ProjectId) =>
  (await sendRequest(dispatch().bus, CountBacklog, { projectId, limit: 1_000 })).queued;

/** Waits until everything is settled: nothing waits in the ledger or on the bus. */
const empty = (projectId: ProjectId) =>
  eventually(async () => {
    expect(await waiting(projectId)).toBe(0);
    expect(await readStream(dispatch().broker, "PUSH_SEND")).toEqual([]);
    expect(await readStream(dispatch().broker, "PUSH_DRAIN")).toEqual([]);
  });

/** Accepts 20 sends for which APNs takes a second, so that later sends wait. */
const slowly = async (projectId: ProjectId) => {
  dispatch().simulators.script([{ provider: "apns", tokenPrefix: "aa", delayMs: 1_000 }]);
  await acceptAll(sendsOf(projectId, devices(20, "aa")));
};

test("sends beyond a project's share wait in the ledger, and each is pushed once, counted and published", async () => {
  const projectId = await dispatch().project();
  await slowly(projectId);
  const some = devices(100);
  const ids = await acceptAll(sendsOf(projectId, some));
  const last = ids.at(-1) ?? "ntf_";
  await eventually(async () => expect(await documents().countDocuments({ _id: last, queued: true })).toBe(1));
  expect(await dispatch().get(projectId, last)).toMatchObject({
    id: last,
    status: "sending",
    counts: { devices: 1, pending: 1 },
  });
  expect(await dispatch().deliveries(projectId, last)).toMatchObject([{ status: "pending", attempts: 0 }]);
  // Its group's message is acked.
  await eventually(async () => {
    const left = await readStream(dispatch().broker, "PUSH_SEND");
    expect(left.filter(({ body }) => body.includes(last))).toEqual([]);
  });
  for (const id of ids)
    expect(await dispatch().final(projectId, id)).toMatchObject({
      status: "completed",
      counts: { devices: 1, accepted: 1 },
    });
  expect(pushesTo(some)).toEqual(some.map(() => 1));
  await empty(projectId);
  for (const id of [ids[0], last] as NotificationId[])
    expect((await eventsOf(projectId, id)).toSorted()).toEqual([
      "delivery.accepted",
      "notification.accepted",
      "notification.completed",
    ]);
});

test("another project's send does not wait behind them", async () => {
  const [noisy, quiet] = [await dispatch().project(), await dispatch().project()];
  await slowly(noisy);
  const some = devices(60, "aa");
  const ids = await acceptAll(sendsOf(noisy, some));
  await eventually(async () => expect(await waiting(noisy)).toBeGreaterThan(40));
  const [id = "ntf_"] = await acceptAll(sendsOf(quiet, [device("bb")]));
  expect(await dispatch().final(quiet, id as NotificationId)).toMatchObject({ counts: { accepted: 1 } });
  expect(await waiting(noisy)).toBeGreaterThan(0);
  for (const one of ids) expect(await dispatch().final(noisy, one)).toMatchObject({ counts: { accepted: 1 } });
  expect(pushesTo(some)).toEqual(some.map(() => 1));
  await empty(noisy);
});

test("what is cancelled, expires or loses its device while it waits is not pushed, and is counted as that", async () => {
  const projectId = await dispatch().project();
  await slowly(projectId);
  const [gone, cancelled, expired, sent] = devices(4, "bb") as [Recipient, Recipient, Recipient, Recipient];
  const acceptedAt = new Date(dispatch().now().getTime() - 10_000).toISOString();
  const sends = sendsOf(projectId, [...devices(20), gone, cancelled, sent], { acceptedAt });
  const old = sendsOf(projectId, [expired], { expiresAt: new Date(dispatch().now().getTime() - 1).toISOString() });
  const ids = (await acceptAll([...sends, ...old.map((one) => ({ ...one, notificationId: nextTo(sends) }))])).slice(-4);
  const [a, b, c, d] = ids as [NotificationId, NotificationId, NotificationId, NotificationId];
  await eventually(async () => expect(await documents().countDocuments({ _id: { $in: ids }, queued: true })).toBe(4));
  dispatch().moved.add(gone.id);
  expect(await dispatch().cancel(projectId, b)).toMatchObject({ status: "cancelled" });
  expect(await dispatch().final(projectId, a)).toMatchObject({ counts: { skipped: 1 }, skips: { moved: 1 } });
  expect(await dispatch().final(projectId, b)).toMatchObject({ status: "cancelled", counts: { cancelled: 1 } });
  expect(await dispatch().final(projectId, c)).toMatchObject({ status: "completed", counts: { accepted: 1 } });
  expect(await dispatch().final(projectId, d)).toMatchObject({ status: "expired", counts: { expired: 1 } });
  expect(pushesTo([gone, cancelled, expired, sent])).toEqual([0, 0, 0, 1]);
  await empty(projectId);
});

/** Another id of the same group. */
const nextTo = (sends: readonly GroupedSend[]): NotificationId =>
  newNotificationIds(new Date(), sends.length + 1).at(-1) ?? "ntf_";

test("a crash between push and outcome sends again only what has no outcome, marked", async () => {
  const projectId = await dispatch().project();
  dispatch().simulators.script([{ provider: "apns", tokenPrefix: "aa", delayMs: 500 }]);
  const some = devices(60, "aa");
  const ids = await acceptAll(sendsOf(projectId, some));
  await eventually(async () => expect(await waiting(projectId)).toBeGreaterThan(20));
  dispatch().fate.crashes = 3;
  for (const id of ids) expect(await dispatch().final(projectId, id)).toMatchObject({ counts: { accepted: 1 } });
  const repeated = pushesTo(some).map((times) => times > 1);
  const marked = await Promise.all(ids.map((id) => dispatch().deliveries(projectId, id)));
  expect(marked.flat().map(({ possible_repeat }) => possible_repeat)).toEqual(repeated);
  expect(repeated.filter(Boolean).length).toBeGreaterThan(0);
  await empty(projectId);
});

test("a backlog whose drain message is gone gets another one", async () => {
  const projectId = await dispatch().project();
  const [send] = sendsOf(projectId, [device()]) as [GroupedSend];
  await slowly(projectId);
  await acceptAll([...sendsOf(projectId, devices(10)), { ...send, notificationId: nextTo(Array(10)) }]);
  await empty(projectId);
  // A crash between the ledger and the bus leaves a send like this.
  const id = nextTo([]);
  const [known] = await documents().find({ projectId }).limit(1).toArray();
  if (!known) throw new Error("nothing is stored");
  const { final: _, rows = [], ...rest } = known;
  const row = { ...rows[0], _id: `${id}/0/0`, state: "started" as const, devices: [device("cc")] };
  await documents().insertOne({ ...rest, _id: id, queued: true, rows: [row as never] });
  expect(await dispatch().final(projectId, id)).toMatchObject({ counts: { devices: 1 } });
  await empty(projectId);
});

test("a send that comes again while it waits is stored and sent once", async () => {
  const projectId = await dispatch().project();
  await slowly(projectId);
  const some = devices(20);
  const sends = sendsOf(projectId, some);
  const ids = await acceptAll(sends);
  await eventually(async () => expect(await waiting(projectId)).toBeGreaterThan(10));
  await Promise.all(sends.map(putAlone));
  await publish(dispatch().bus, DrainBacklogV1, { projectId }, { id: randomUUID() }).catch(() => undefined);
  for (const id of ids) await dispatch().final(projectId, id);
  await empty(projectId);
  expect(pushesTo(some)).toEqual(some.map(() => 1));
});
