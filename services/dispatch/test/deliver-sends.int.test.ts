import { randomUUID } from "node:crypto";
import { publish } from "@herald/bus";
import {
  type GroupedSend,
  type NotificationId,
  newNotificationIds,
  type ProjectId,
  type Recipient,
  SendGroupV1,
  sendGroupOf,
} from "@herald/contracts";
import { eventually, readStream } from "@herald/testing";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { deadLetterActions, raw } from "./dead-letters-fixture.ts";
import { type DispatchTest, day, device, devices, startDispatchTest } from "./dispatch-fixture.ts";
import { handleResolveSends, type RegistryFixture } from "./registry-fixture.ts";

let dispatch: DispatchTest;
let answers: RegistryFixture;

beforeAll(async () => {
  dispatch = await startDispatchTest();
  answers = handleResolveSends(dispatch.bus);
});
afterAll(async () => {
  await answers.stop();
  await dispatch.stop();
});
beforeEach(() => {
  answers.reset();
  dispatch.simulators.clear();
});

/** Sends of one project, each to a target of its own, as the gateway groups them. */
const groupOf = (projectId: ProjectId, targets: readonly string[], change: Partial<GroupedSend> = {}) => {
  const sends = newNotificationIds(new Date(), targets.length).map(
    (notificationId, at): GroupedSend => ({
      projectId,
      notificationId,
      content: { title: "Hello", targets: [targets[at] ?? ""] },
      acceptedAt: dispatch.now().toISOString(),
      expiresAt: new Date(dispatch.now().getTime() + day).toISOString(),
      ...change,
    }),
  );
  const ids = sends.map(({ notificationId }) => notificationId);
  return { groupId: sendGroupOf(ids[0] ?? "ntf_"), sends, ids };
};

const put = ({ groupId, sends }: { groupId: NotificationId; sends: GroupedSend[] }, id: string = groupId) =>
  publish(dispatch.bus, SendGroupV1, { groupId, sends }, { id });

const known = (target: string, some: readonly Recipient[]) => {
  answers.registry.set(target, { devices: some });
  return some;
};

const accept = async (projectId: ProjectId, ...targets: string[]): Promise<NotificationId[]> => {
  const group = groupOf(projectId, targets);
  await put(group);
  return group.ids;
};

/** The events of a notification, by their type, in the order of the stream. */
const eventsOf = async (projectId: ProjectId, id: NotificationId) => {
  const all = await readStream(dispatch.broker, "PUSH_EVENTS", `push.evt.v1.${projectId}.>`);
  return all.filter(({ body }) => body.includes(id)).map(({ subject }) => subject.split(".").slice(4).join("."));
};

const pushesTo = (some: readonly Recipient[]) =>
  some.map(({ token }) => dispatch.simulators.pushes({ status: 200 }).filter((push) => push.token === token).length);

describe("sends of a group", () => {
  test("are each pushed once, counted and published, and the stream is empty then", async () => {
    const projectId = await dispatch.project();
    const some = devices(3);
    for (const one of some) known(one.id, [one]);
    const ids = await accept(projectId, ...some.map(({ id }) => id));
    for (const [at, id] of ids.entries()) {
      expect(await dispatch.final(projectId, id)).toMatchObject({
        status: "completed",
        counts: { devices: 1, accepted: 1 },
        unmatched: [],
      });
      expect(await dispatch.rows(id)).toMatchObject([{ _id: `${id}/0/0`, state: "final", starts: 1 }]);
      expect(await dispatch.deliveries(projectId, id)).toMatchObject([
        { device_id: some[at]?.id, status: "accepted", attempts: 1, possible_repeat: false },
      ]);
    }
    expect(pushesTo(some)).toEqual([1, 1, 1]);
    await eventually(async () => {
      for (const id of ids)
        expect(await eventsOf(projectId, id)).toEqual([
          "notification.accepted",
          "delivery.accepted",
          "notification.completed",
        ]);
      expect(await readStream(dispatch.broker, "PUSH_SEND")).toEqual([]);
    });
    // Published before the message was acked, so no document carries them.
    for (const id of ids) for (const row of await dispatch.rows(id)) expect(row).not.toHaveProperty("outbox");
  });

  test("without devices, with too many, or that fail, leave the others alone", async () => {
    const projectId = await dispatch.project();
    const [good, dead] = [device(), device("de")];
    known("token:good", [good]);
    known("token:dead", [dead]);
    answers.registry.set("metadata:plan=pro", "large");
    dispatch.simulators.script([{ provider: "apns", tokenPrefix: "de", status: 410, reason: "Unregistered" }]);
    const [first, unmatched, large, gone] = await accept(
      projectId,
      "token:good",
      "token:unknown",
      "metadata:plan=pro",
      "token:dead",
    );
    expect(await dispatch.final(projectId, first ?? "ntf_")).toMatchObject({ counts: { accepted: 1 } });
    expect(await dispatch.final(projectId, unmatched ?? "ntf_")).toMatchObject({
      status: "completed",
      counts: { devices: 0 },
      unmatched: ["token:unknown"],
    });
    expect(await dispatch.final(projectId, gone ?? "ntf_")).toMatchObject({
      counts: { devices: 1, failed: 1 },
      failures: { unregistered: 1 },
    });
    await eventually(async () =>
      expect(await eventsOf(projectId, gone ?? "ntf_")).toEqual(
        expect.arrayContaining(["notification.accepted", "delivery.failed", "notification.completed"]),
      ),
    );
    expect(await dispatch.expansion(projectId, large ?? "ntf_")).toMatchObject({ targets: ["metadata:plan=pro"] });
  });

  test("go to all platforms of their audience and end once", async () => {
    const projectId = await dispatch.project();
    answers.registry.set("token:both", { devices: devices(2) });
    answers.registry.set("token:web", { platform: "web", devices: devices(1) });
    const group = groupOf(projectId, ["token:both"]);
    const [send] = group.sends;
    if (send) send.content.targets = ["token:both", "token:web"];
    await put(group);
    // The project has no settings for Web Push.
    expect(await dispatch.final(projectId, group.ids[0] ?? "ntf_")).toMatchObject({
      counts: { devices: 3, accepted: 2, failed: 1 },
      failures: { "provider-not-configured": 1 },
    });
  });

  test("wait for a provider that is in trouble without keeping the others of the group", async () => {
    const projectId = await dispatch.project();
    const [good, slow] = [device(), device("503")];
    known("token:good", [good]);
    known("token:slow", [slow]);
    dispatch.simulators.script([{ provider: "apns", tokenPrefix: "503", times: 1, status: 503 }]);
    const [first, second] = await accept(projectId, "token:good", "token:slow");
    await dispatch.final(projectId, first ?? "ntf_");
    await eventually(async () => expect(await dispatch.rows(second ?? "ntf_")).toHaveLength(2));
    dispatch.pass(60_000);
    expect(await dispatch.final(projectId, second ?? "ntf_")).toMatchObject({ counts: { devices: 1, accepted: 1 } });
    expect(pushesTo([good, slow])).toEqual([1, 1]);
  });
});

describe("a notification that is accepted and not yet stored", () => {
  const hold = () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    answers.withhold(promise);
    return resolve;
  };

  test("is found by its project alone", async () => {
    const projectId = await dispatch.project();
    const release = hold();
    const [id] = await accept(projectId, "token:unknown");
    expect(await dispatch.get(projectId, id ?? "ntf_")).toMatchObject({ id, status: "accepted" });
    const other = await dispatch.project();
    await expect(dispatch.get(other, id ?? "ntf_")).rejects.toMatchObject({ code: "notification-not-found" });
    const [stranger] = newNotificationIds(new Date(), 1);
    await expect(dispatch.get(projectId, stranger ?? "ntf_")).rejects.toMatchObject({ code: "notification-not-found" });
    release();
    await dispatch.final(projectId, id ?? "ntf_");
  });

  test("can be cancelled: nothing is pushed, and the others of its group are", async () => {
    const projectId = await dispatch.project();
    const [one, two] = [device(), device()];
    known("token:one", [one]);
    known("token:two", [two]);
    const release = hold();
    const [cancelled, other] = await accept(projectId, "token:one", "token:two");
    expect(await dispatch.cancel(projectId, cancelled ?? "ntf_")).toMatchObject({ status: "cancelled" });
    release();
    expect(await dispatch.final(projectId, other ?? "ntf_")).toMatchObject({ counts: { accepted: 1 } });
    await eventually(async () => expect(await readStream(dispatch.broker, "PUSH_SEND")).toEqual([]));
    expect(pushesTo([one, two])).toEqual([0, 1]);
    expect(await dispatch.get(projectId, cancelled ?? "ntf_")).toMatchObject({
      status: "cancelled",
      counts: { devices: 0 },
    });
  });
});

describe("a group that comes again", () => {
  test("after a crash between push and outcome sends only what has none, marked as a possible repeat", async () => {
    const projectId = await dispatch.project();
    const some = devices(2);
    for (const one of some) known(one.id, [one]);
    dispatch.fate.crashes = 1;
    const ids = await accept(projectId, ...some.map(({ id }) => id));
    for (const id of ids) expect(await dispatch.final(projectId, id)).toMatchObject({ counts: { accepted: 1 } });
    expect(pushesTo(some).sort()).toEqual([1, 2]);
    const marked = await Promise.all(ids.map((id) => dispatch.deliveries(projectId, id)));
    const repeated = pushesTo(some).map((times) => times === 2);
    expect(marked.flat().map(({ possible_repeat }) => possible_repeat)).toEqual(repeated);
    await eventually(async () => {
      for (const id of ids) expect(new Set(await eventsOf(projectId, id)).size).toBe(3);
    });
  });

  test("in the same process, because the bus was unavailable between outcome and event: both are published, and one part waits", async () => {
    const projectId = await dispatch.project();
    const [sent, waiting] = [device("a0"), device("503")];
    known("token:sent", [sent]);
    known("token:waiting", [waiting]);
    dispatch.simulators.script([
      { provider: "apns", tokenPrefix: "503", status: 503, headers: { "retry-after": "600" } },
      { provider: "apns", tokenPrefix: "a0", delayMs: 1_000 },
    ]);
    const group = groupOf(projectId, ["token:sent"]);
    const [send] = group.sends;
    if (send) send.content.targets = ["token:sent", "token:waiting"];
    await put(group);
    const [id = "ntf_" as NotificationId] = group.ids;
    // Both are begun, and APNs takes a second for the first.
    await eventually(async () => expect((await dispatch.rows(id)).length).toBeGreaterThanOrEqual(2));
    await dispatch.natsProxy.cut();
    await eventually(async () => expect(await dispatch.rows(id)).toMatchObject([{ state: "final" }, {}, {}]));
    expect(await eventsOf(projectId, id)).toEqual([]);
    await dispatch.natsProxy.heal();
    await eventually(async () => {
      expect(await readStream(dispatch.broker, "PUSH_SEND")).toEqual([]);
      expect(new Set(await eventsOf(projectId, id))).toEqual(new Set(["notification.accepted", "delivery.accepted"]));
    });
    expect(pushesTo([sent])).toEqual([1]);
    expect(await dispatch.get(projectId, id)).toMatchObject({ counts: { accepted: 1, pending: 1 } });
  });

  test("after it was sent, under another message, sends nothing and ends as it did", async () => {
    const projectId = await dispatch.project();
    const one = device();
    known(one.id, [one]);
    const group = groupOf(projectId, [one.id]);
    await put(group);
    const [id = "ntf_" as NotificationId] = group.ids;
    const before = await dispatch.final(projectId, id);
    // Its audience has changed meanwhile.
    known(one.id, devices(3));
    await put(group, randomUUID());
    await eventually(async () => expect(await readStream(dispatch.broker, "PUSH_SEND")).toEqual([]));
    expect(await dispatch.final(projectId, id)).toEqual(before);
    expect(pushesTo([one])).toEqual([1]);
    expect(await dispatch.rows(id)).toHaveLength(1);
  });

  test("while the database was unavailable: every send is final afterwards, and none is pushed twice", async () => {
    const projectId = await dispatch.project();
    const some = devices(20);
    for (const one of some) known(one.id, [one]);
    await dispatch.mongoProxy.cut();
    const ids = await accept(projectId, ...some.map(({ id }) => id));
    await dispatch.mongoProxy.heal();
    for (const id of ids) expect(await dispatch.final(projectId, id)).toMatchObject({ counts: { accepted: 1 } });
    expect(pushesTo(some)).toEqual(some.map(() => 1));
  });
});

describe("a group that is given up", () => {
  const { die } = deadLetterActions(() => dispatch);

  test("ends what had begun, failed by Herald, and gives the rest to the path of large sends", async () => {
    const projectId = await dispatch.project();
    const [begun, untouched] = [device(), device()];
    known("token:begun", [begun]);
    dispatch.simulators.script([{ provider: "apns", hang: true }]);
    const group = groupOf(projectId, ["token:begun"]);
    const { sequence } = await put(group);
    const [id = "ntf_" as NotificationId] = group.ids;
    const row = await eventually(async () => {
      const [found] = await dispatch.rows(id);
      if (!found) throw new Error("it has no row yet");
      return found;
    });
    known("token:untouched", [untouched]);
    const other = groupOf(projectId, ["token:untouched"]);
    const sends = [...group.sends, ...other.sends];
    await die(
      "dispatch-send-groups",
      SendGroupV1,
      { groupId: group.groupId, sends },
      {
        publishedAt: new Date(row.claim ?? 0),
        sequence,
        body: { groupId: group.groupId, sends: [...sends, { no: "send" }] },
      },
    );
    expect(await dispatch.final(projectId, id)).toMatchObject({ counts: { failed: 1 }, failures: { internal: 1 } });
    expect(await dispatch.expansion(projectId, other.ids[0] ?? "ntf_")).toMatchObject({ targets: ["token:untouched"] });
  });

  test("because one of its sends is malformed: the others are sent", async () => {
    const projectId = await dispatch.project();
    const group = groupOf(projectId, ["token:good"]);
    await publish(
      dispatch.bus,
      raw(`push.send.v1.group.${group.groupId}`),
      { groupId: group.groupId, sends: [{ notificationId: 1 }, ...group.sends] },
      { id: randomUUID() },
    );
    expect(await dispatch.expansion(projectId, group.ids[0] ?? "ntf_")).toMatchObject({ targets: ["token:good"] });
  });
});
