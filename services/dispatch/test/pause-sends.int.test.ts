import { openBucket, sendRequest } from "@herald/bus";
import {
  backlogRequests,
  installation,
  type NotificationId,
  NotificationPausedV1,
  NotificationResumedV1,
  newNotificationId,
  notificationRequests,
  type ProjectId,
  projectRulesKey,
  providerRequests,
  RulesRecord,
} from "@herald/contracts";
import { eventually } from "@herald/testing";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { deliveryCollection } from "../src/stores/delivery-document.ts";
import { notificationCollection } from "../src/stores/notification-document.ts";
import { type DispatchTest, day, device, devices, startDispatchTest } from "./dispatch-fixture.ts";
import { handleResolveSends, type RegistryFixture } from "./registry-fixture.ts";

const by = { id: "opr_06bq4ghm31tz5d2ns8y7k9w0ac", name: "Maria Lopez" } as const;
const hour = 3_600_000;

let dispatch: DispatchTest;
let registry: RegistryFixture;
let projectId: ProjectId;
beforeAll(async () => {
  // One chunk at a time, so that a test can pause between two chunks.
  dispatch = await startDispatchTest({ HERALD_DISPATCH_IN_FLIGHT: "50" });
  registry = handleResolveSends(dispatch.bus);
});
afterAll(async () => {
  await registry.stop();
  await dispatch.stop();
});
beforeEach(async () => {
  projectId = await dispatch.project();
});
afterEach(() => {
  dispatch.simulators.clear();
  dispatch.simulators.script([]);
  dispatch.moved.clear();
  dispatch.clock.ahead = 0;
});

const pause = (notificationId: NotificationId, reason?: string) =>
  sendRequest(dispatch.bus, notificationRequests.pause, { projectId, notificationId, by, reason });
const resume = (notificationId: NotificationId) =>
  sendRequest(dispatch.bus, notificationRequests.resume, { projectId, notificationId, by });
const pushed = () => dispatch.simulators.stats().apns?.total ?? 0;

/** Waits until nothing of it is being sent: what is not final is held. */
const held = (id: NotificationId, rows: number) =>
  eventually(async () => {
    const open = (await dispatch.rows(id)).filter(({ state }) => state !== "final");
    expect(open.map(({ state, held }) => [state, held])).toEqual(Array(rows).fill(["waiting", true]));
  });

describe("a notification", () => {
  test("that is being sent stops within a chunk of each batch, and continues with the rest, each device once", async () => {
    const { send, partition, final, simulators, lastEvent } = dispatch;
    const id = await send(projectId);
    simulators.script([{ provider: "apns", status: 200, delayMs: 300 }]);
    const all = devices(400);
    await partition(projectId, id, [all.slice(0, 200), all.slice(200)]);
    await eventually(() => expect(pushed()).toBeGreaterThan(0));

    const answer = await pause(id, "the wrong link");
    expect(answer).toMatchObject({ status: "paused", paused: { by, reason: "the wrong link" } });
    const begun = pushed();
    await held(id, 2);
    expect(pushed()).toBeLessThanOrEqual(begun + 50);
    const { accepted, pending } = (await dispatch.get(projectId, id)).counts;
    expect([accepted, accepted + pending]).toEqual([pushed(), 400]);

    expect(await resume(id)).not.toHaveProperty("paused");
    expect(await final(projectId, id)).toMatchObject({ status: "completed", counts: { accepted: 400 } });
    expect(new Set(simulators.pushes().map(({ token }) => token)).size).toBe(400);
    expect(pushed()).toBe(400);
    const sent = await dispatch.deliveries(projectId, id);
    expect(sent.filter(({ possible_repeat, attempts }) => possible_repeat || attempts !== 1)).toEqual([]);
    const of = { notification_id: id, by };
    expect(await lastEvent(projectId, NotificationPausedV1)).toMatchObject({ ...of, detail: "the wrong link" });
    await eventually(async () => expect(await lastEvent(projectId, NotificationResumedV1)).toMatchObject(of));
  });

  test("holds batches that still arrive, and asks for their devices again when it is resumed", async () => {
    const { send, partition, final, expansion } = dispatch;
    const id = await send(projectId);
    await expansion(projectId, id);
    await pause(id);
    const [one, other] = devices(2);
    if (!one || !other) throw new Error("no devices");
    await partition(projectId, id, [[one], [other]]);
    await held(id, 2);
    expect(pushed()).toBe(0);
    expect(await dispatch.get(projectId, id)).toMatchObject({ status: "paused", counts: { devices: 2, pending: 2 } });
    dispatch.moved.add(other.id);
    await resume(id);
    expect(await final(projectId, id)).toMatchObject({ counts: { accepted: 1, skipped: 1 }, skips: { moved: 1 } });
  });

  test("does not begin at its time, and begins when it is resumed", async () => {
    const { send, get, now, pass, partition, final } = dispatch;
    const id = await send(projectId, { sendAt: new Date(now().getTime() + hour).toISOString() });
    await eventually(async () => expect(await get(projectId, id)).toMatchObject({ status: "scheduled" }));
    await pause(id);
    pass(2 * hour);
    // The sweep has found it, and let it be.
    const marker = await send(projectId);
    await partition(projectId, marker, [[device()]]);
    await final(projectId, marker);
    expect(await get(projectId, id)).toMatchObject({ status: "paused", counts: { devices: 0 } });
    await resume(id);
    await partition(projectId, id, [[device()]]);
    expect(await final(projectId, id)).toMatchObject({ status: "completed", counts: { accepted: 1 } });
  });

  test("that is resumed before its time waits for it", async () => {
    const { send, get, now, pass, partition, final } = dispatch;
    const id = await send(projectId, { sendAt: new Date(now().getTime() + hour).toISOString() });
    await eventually(async () => expect(await get(projectId, id)).toMatchObject({ status: "scheduled" }));
    await pause(id);
    expect(await resume(id)).toMatchObject({ status: "scheduled" });
    pass(2 * hour);
    await partition(projectId, id, [[device()]]);
    expect(await final(projectId, id)).toMatchObject({ status: "completed" });
  });

  test.each(["being sent", "not begun"])(
    "whose time to live ends meanwhile has expired, and says why: %s",
    async (when) => {
      const { send, partition, final, now, pass, expansion } = dispatch;
      const sendAt = new Date(now().getTime() + hour).toISOString();
      const id = await send(projectId, when === "not begun" ? { sendAt } : {});
      if (when === "being sent") await expansion(projectId, id);
      await eventually(() => pause(id));
      if (when === "being sent") {
        await partition(projectId, id, [[device()]]);
        await held(id, 1);
      }
      pass(2 * day);
      if (when === "not begun") await partition(projectId, id, [[device()]]);
      expect(await final(projectId, id)).toMatchObject({ status: "expired", counts: { expired: 1 } });
      expect(await dispatch.deliveries(projectId, id)).toMatchObject([{ status: "expired", reason: "paused" }]);
      await expect(resume(id)).rejects.toMatchObject({ code: "notification-final" });
    },
  );

  test("is cancelled while it is paused", async () => {
    const { send, partition, cancel, final, expansion } = dispatch;
    const id = await send(projectId);
    await expansion(projectId, id);
    await pause(id);
    await partition(projectId, id, [[device()], [device()]]);
    await held(id, 2);
    expect((await cancel(projectId, id)).status).toBe("cancelled");
    const ended = await final(projectId, id);
    expect(ended).toMatchObject({ status: "cancelled", counts: { cancelled: 2 } });
    expect(ended).not.toHaveProperty("paused");
    await expect(pause(id)).rejects.toMatchObject({ code: "notification-final" });
  });

  test("is paused once, by the first who does, and listed as paused", async () => {
    const { send, expansion, bus } = dispatch;
    const id = await send(projectId);
    await expansion(projectId, id);
    const first = await pause(id, "first");
    expect((await pause(id, "second")).paused).toEqual(first.paused);
    const list = (status: "paused" | "sending") =>
      sendRequest(bus, notificationRequests.list, { projectId, status, page: { by: "page", page: 1, perPage: 10 } });
    expect((await list("paused")).data.map((one) => one.id)).toEqual([id]);
    expect((await list("sending")).data).toEqual([]);
    await Promise.all([resume(id), resume(id)]);
    expect((await list("sending")).data.map((one) => one.id)).toEqual([id]);
    expect((await list("paused")).data).toEqual([]);
  });

  test("of another project, or that does not exist, is not found", async () => {
    await expect(pause(newNotificationId(new Date()))).rejects.toMatchObject({ code: "notification-not-found" });
    await expect(resume(newNotificationId(new Date()))).rejects.toMatchObject({ code: "notification-not-found" });
  });
});

const bucket = () => openBucket(dispatch.bus, "push_projects", RulesRecord);
const stopSends = async (scope: ProjectId | typeof installation) => {
  const record = { projectId: scope, kinds: [], paused: { at: new Date().toISOString(), by, reason: "an outage" } };
  await bucket().put(projectRulesKey(scope), record);
  const test = {
    projectId,
    provider: "apns" as const,
    push: { token: device().token, environment: "sandbox" as const },
  };
  await eventually(() =>
    expect(sendRequest(dispatch.bus, providerRequests.test, test)).rejects.toMatchObject({ code: "project-paused" }),
  );
  dispatch.simulators.clear();
};
const continueSends = (scope: ProjectId | typeof installation) =>
  scope === installation
    ? bucket().put(projectRulesKey(scope), { projectId: scope, kinds: [] })
    : bucket().delete(projectRulesKey(scope));
const queued = async () => (await sendRequest(dispatch.bus, backlogRequests.count, { projectId, limit: 100 })).queued;

describe.each(["project", "all"] as const)("sends of %s", (what) => {
  const scope = () => (what === "all" ? installation : projectId);

  test("wait while they are paused, whatever their step, and continue with each device once", async () => {
    const { send, sendSmall, partition, final, get, simulators, expansion } = dispatch;
    const running = await send(projectId);
    simulators.script([{ provider: "apns", status: 200, delayMs: 300 }]);
    await partition(projectId, running, [devices(200)], { of: 2 });
    await eventually(() => expect(pushed()).toBeGreaterThan(0));
    await stopSends(scope());
    const began = pushed();
    await partition(projectId, running, [devices(10)], { from: 1, of: 2 });
    await held(running, 2);
    const large = await send(projectId);
    const to = device();
    registry.registry.set(`device:${to.id}`, { devices: [to] });
    const small = await sendSmall(projectId, { targets: [`device:${to.id}`] });
    await eventually(async () => expect(await queued()).toBe(1));
    expect(await get(projectId, large)).toMatchObject({ status: "accepted" });
    expect(await get(projectId, small)).toMatchObject({ status: "accepted" });
    expect(pushed()).toBeLessThanOrEqual(began + 50);

    await continueSends(scope());
    await partition(projectId, large, [devices(5)]);
    await expansion(projectId, large);
    expect(await final(projectId, running)).toMatchObject({ counts: { accepted: 210 } });
    expect(await final(projectId, large)).toMatchObject({ counts: { accepted: 5 } });
    expect(await final(projectId, small)).toMatchObject({ counts: { accepted: 1 } });
    expect(await queued()).toBe(0);
  });

  test("that are cancelled while their devices are being held end, although all waits", async () => {
    const { send, partition, final, expansion } = dispatch;
    const id = await send(projectId);
    await expansion(projectId, id);
    await stopSends(scope());
    await partition(projectId, id, [[device()]]);
    await held(id, 1);
    // As another process leaves it that has written the outcomes, but not the row of what is held, before the cancel.
    const db = dispatch.database.client.db(dispatch.database.name);
    const child = await deliveryCollection(db).findOne({ notificationId: id, state: "waiting" });
    if (!child?.devices || !child.dueAt) throw new Error("nothing waits");
    const { devices: waiting, dueAt } = child;
    await deliveryCollection(db).deleteOne({ _id: child._id });
    const stop = { kind: "cancelled" as const, at: dispatch.now() };
    await notificationCollection(db).updateOne({ _id: id }, { $set: { status: "cancelled", stop } });
    const rest = { devices: waiting, dueAt, notBefore: dispatch.now(), paused: false, held: true as const };
    await deliveryCollection(db).updateOne(
      { notificationId: id, state: "final" },
      { $set: { state: "settled", child: rest, dueAt: new Date(0) } },
    );
    expect(await final(projectId, id)).toMatchObject({ status: "cancelled", counts: { cancelled: 1 } });
    await continueSends(scope());
  });

  test("that are resumed before they are stored wait as before, and stay small", async () => {
    const { sendSmall, final } = dispatch;
    await stopSends(scope());
    const to = device();
    registry.registry.set(`device:${to.id}`, { devices: [to] });
    const id = await sendSmall(projectId, { targets: [`device:${to.id}`] });
    await eventually(async () => expect(await queued()).toBe(1));
    expect(await resume(id)).toMatchObject({ id, status: "accepted" });
    await continueSends(scope());
    expect(await final(projectId, id)).toMatchObject({ counts: { accepted: 1 } });
  });

  test("that are paused themselves stay so when their project continues", async () => {
    const { sendSmall, final, get } = dispatch;
    await stopSends(scope());
    const [one, other] = [device(), device()];
    for (const to of [one, other]) registry.registry.set(`device:${to.id}`, { devices: [to] });
    const id = await sendSmall(projectId, { targets: [`device:${one.id}`] });
    const marker = await sendSmall(projectId, { targets: [`device:${other.id}`] });
    await eventually(async () => expect(await queued()).toBe(2));
    expect(await pause(id)).toMatchObject({ status: "paused" });
    await continueSends(scope());
    await final(projectId, marker);
    expect(await get(projectId, id)).toMatchObject({ status: "paused" });
    await resume(id);
    await dispatch.partition(projectId, id, [[one]]);
    expect(await final(projectId, id)).toMatchObject({ counts: { accepted: 1 } });
    expect(dispatch.simulators.pushes().filter(({ token }) => token === one.token)).toHaveLength(1);
  });
});
