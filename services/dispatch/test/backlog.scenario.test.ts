import { randomUUID } from "node:crypto";
import { lastMessage, publish, sendRequest } from "@herald/bus";
import {
  backlogRequests,
  DrainBacklogV1,
  type GroupedSend,
  type NotificationId,
  newNotificationIds,
  type ProjectId,
  type Recipient,
  SendGroupV1,
  sendGroupOf,
  userKey,
} from "@herald/contracts";
import { eventually, readStream } from "@herald/testing";
import { expect, test } from "vitest";
import { createSendGroupStore } from "../src/stores/send-group-store.ts";
import { device, devices } from "./dispatch-fixture.ts";
import { useSendGroups } from "./send-groups-fixture.ts";

/** 15 sends of one project are delivered at a time, about 5 more wait in memory, and all others are in its backlog. */
const smallSends = { total: 20, waitingBytes: 2_000 };

const { dispatch, answers, sendsOf, putAlone, acceptAll, eventsOf, pushesTo } = useSendGroups({}, { smallSends });

const parked = () =>
  dispatch().database.client.db(dispatch().database.name).collection<{
    _id: string;
    projectId: ProjectId;
    sends: string;
    size: number;
  }>("sendGroups");
/** Waits until these sends are in the backlog. */
const areParked = (projectId: ProjectId, ids: readonly NotificationId[]) =>
  eventually(async () => {
    const groups = await parked().find({ projectId }).toArray();
    const all = groups.map(({ sends }) => sends).join();
    for (const id of ids) expect(all).toContain(id);
  });

const waiting = async (projectId: ProjectId) =>
  (await sendRequest(dispatch().bus, backlogRequests.count, { projectId, limit: 1_000 })).queued;

/** Waits until everything is settled: nothing waits in the ledger or on the bus. */
const empty = (projectId: ProjectId) =>
  eventually(async () => {
    expect(await waiting(projectId)).toBe(0);
    expect(await readStream(dispatch().broker, "PUSH_SEND")).toEqual([]);
    expect(await readStream(dispatch().broker, "PUSH_DRAIN")).toEqual([]);
  });

/** Accepts 20 sends for which APNs takes seconds, so that later sends wait for as long as a busy machine needs to look at them. */
const slowly = async (projectId: ProjectId, delayMs = 2_000) => {
  dispatch().simulators.script([{ provider: "apns", tokenPrefix: "aa", delayMs }]);
  await acceptAll(sendsOf(projectId, devices(20, "aa")));
};

test("sends beyond a project's share wait in its backlog, and each is pushed once, counted and published", async () => {
  const projectId = await dispatch().project();
  await slowly(projectId, 4_000);
  const some = devices(100);
  const ids = await acceptAll(sendsOf(projectId, some.slice(0, -1)));
  await areParked(projectId, ids.slice(-1));
  ids.push(...(await acceptAll(sendsOf(projectId, some.slice(-1)))));
  const last = ids.at(-1) ?? "ntf_";
  await areParked(projectId, [last]);
  // Its group's message is acked.
  await eventually(async () => {
    const subject = SendGroupV1.subject({ groupId: sendGroupOf(last) } as SendGroupV1);
    expect(await lastMessage(dispatch().bus, "PUSH_SEND", subject, SendGroupV1)).toBeUndefined();
  });
  expect(await dispatch().get(projectId, last)).toMatchObject({ id: last, status: "accepted", counts: { devices: 0 } });
  expect(await dispatch().deliveries(projectId, last)).toEqual([]);
  for (const id of ids)
    expect(await dispatch().final(projectId, id)).toMatchObject({
      status: "completed",
      counts: { devices: 1, accepted: 1 },
    });
  expect(pushesTo(some)).toEqual(some.map(() => 1));
  await empty(projectId);
  for (const id of [ids[0], last] as NotificationId[])
    await eventually(async () =>
      expect((await eventsOf(projectId, id)).toSorted()).toEqual([
        "delivery.accepted",
        "notification.accepted",
        "notification.completed",
      ]),
    );
});

test("what is stored while one phone takes long does not wait for it", async () => {
  const projectId = await dispatch().project();
  dispatch().simulators.script([
    { provider: "apns", tokenPrefix: "aa", delayMs: 1_000 },
    { provider: "apns", tokenPrefix: "cc", delayMs: 15_000 },
  ]);
  await acceptAll(sendsOf(projectId, devices(20, "aa")));
  const [slow = "ntf_"] = await acceptAll(sendsOf(projectId, devices(1, "cc")));
  await areParked(projectId, [slow]);
  await eventually(async () => expect(await dispatch().rows(slow)).toMatchObject([{ state: "started" }]));
  const later = await acceptAll(sendsOf(projectId, devices(3)));
  for (const id of later) expect(await dispatch().final(projectId, id)).toMatchObject({ counts: { accepted: 1 } });
  expect(await dispatch().get(projectId, slow)).toMatchObject({ status: "sending", counts: { pending: 1 } });
  expect(await dispatch().final(projectId, slow)).toMatchObject({ counts: { accepted: 1 } });
  await empty(projectId);
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
  await areParked(projectId, ids);
  answers().registry.delete(gone.id);
  expect(await dispatch().cancel(projectId, b)).toMatchObject({ status: "cancelled" });
  expect(await dispatch().final(projectId, a)).toMatchObject({ counts: { devices: 0 }, unmatched: [gone.id] });
  expect(await dispatch().final(projectId, b)).toMatchObject({ status: "cancelled", counts: { devices: 0 } });
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
  dispatch().simulators.script([{ provider: "apns", tokenPrefix: "aa", delayMs: 1_500 }]);
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
  const sends = sendsOf(projectId, devices(3));
  const [first] = sends;
  const _id = `${sendGroupOf(first?.notificationId ?? "ntf_")}/x`;
  // A crash between the database and the bus leaves a group like this.
  const group = { _id, projectId, sends: JSON.stringify(sends), size: 3, claim: { at: 1, sequence: 7_000_000 } };
  await parked().insertOne(group);
  for (const { notificationId } of sends)
    expect(await dispatch().final(projectId, notificationId)).toMatchObject({ counts: { accepted: 1 } });
  await empty(projectId);
});

test("a group whose message comes again after some of its sends were parked sends each once", async () => {
  const projectId = await dispatch().project();
  await slowly(projectId);
  const some = devices(60, "bb");
  // The process dies over one of the sends that it delivers at once, so the message comes again.
  dispatch().fate.crashes = 1;
  const ids = await acceptAll(sendsOf(projectId, some));
  for (const id of ids) expect(await dispatch().final(projectId, id)).toMatchObject({ counts: { accepted: 1 } });
  await empty(projectId);
  const times = pushesTo(some);
  const marked = (await Promise.all(ids.map((id) => dispatch().deliveries(projectId, id)))).flat();
  expect(marked.map(({ possible_repeat }) => possible_repeat)).toEqual(times.map((count) => count > 1));
  expect(times.filter((count) => count > 1).length).toBeLessThanOrEqual(1);
});

test("a send that matches too many devices at its turn becomes a large one, and is found on the way", async () => {
  const projectId = await dispatch().project();
  await slowly(projectId);
  const [one, ...others] = sendsOf(projectId, devices(40, "bb"));
  const large = { ...(one as GroupedSend), content: { title: "Hello", targets: ["user:many"] } };
  const ids = await acceptAll([...others, large]);
  await areParked(projectId, [large.notificationId]);
  answers().registry.set("user:many", "large");
  const watched = eventually(async () => {
    // Throws `notification-not-found` if it is in no place for a moment.
    await dispatch().get(projectId, large.notificationId);
    expect(await waiting(projectId)).toBe(0);
  });
  expect(await dispatch().expansion(projectId, large.notificationId)).toMatchObject({ targets: ["user:many"] });
  await watched;
  expect(await dispatch().get(projectId, large.notificationId)).toMatchObject({ status: "sending" });
  for (const id of ids.filter((each) => each !== large.notificationId)) await dispatch().final(projectId, id);
});

test("an erased user is in no backlog any more, and a deleted project has none", async () => {
  const projectId = await dispatch().project();
  await slowly(projectId);
  const [one, ...others] = sendsOf(projectId, devices(40, "bb"));
  const [two, ...more] = others;
  const personal = { ...(one as GroupedSend), content: { title: "For Eve", targets: ["user:eve"] } };
  const listed: GroupedSend = {
    ...(two as GroupedSend),
    content: { title: "Hi {{ name }}", targets: [], recipients: { kind: "user", lines: 2 } },
    personal: { texts: "{}", locale: "en", values: {} },
    recipients: [
      [
        { n: 1, key: "eve", values: { name: "Eve" } },
        { n: 2, key: "ann", values: { name: "Ann" } },
      ],
    ],
  };
  await acceptAll([...more, personal, listed]);
  await areParked(projectId, [personal.notificationId, listed.notificationId]);
  const store = createSendGroupStore(dispatch().database.client.db(dispatch().database.name));
  await store.erase({ projectId, key: userKey(projectId, "eve"), at: dispatch().now() });
  const left = JSON.stringify(await parked().find({ projectId }).toArray());
  expect(left).toContain(personal.notificationId);
  expect(left).not.toContain("Eve");
  expect(left).not.toMatch(/user:eve|\\"eve/);
  expect(left).toContain("Ann");
  expect(left).not.toContain(userKey(projectId, "eve"));
  const target = `${more.at(-1)?.content.targets[0]}`;
  expect(left).toContain(target);
  await store.erase({ projectId, key: userKey(projectId, "eve"), at: dispatch().now(), devices: [target], tokens: [] });
  expect(JSON.stringify(await parked().find({ projectId }).toArray())).not.toContain(target);
  const [backlog] = await store.backlogs(10);
  expect(backlog).toMatchObject({ projectId, sends: await store.count(projectId, 1_000), since: expect.any(Date) });
  await store.removeProject(projectId);
  expect([await store.count(projectId, 1_000), await store.backlogs(10)]).toEqual([0, []]);
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
