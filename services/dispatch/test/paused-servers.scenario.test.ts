import type { Notification, NotificationId, ProjectId, SendV1 } from "@herald/contracts";
import { eventually } from "@herald/testing";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { type DispatchTest, devices, startDispatchTest } from "./dispatch-fixture.ts";
import { putOther } from "./other-providers-fixture.ts";

let dispatch: DispatchTest;
beforeAll(async () => {
  dispatch = await startDispatchTest({ HERALD_DISPATCH_REQUEST_TIMEOUT: "3s" }); // long enough for a busy machine
  dispatch.stopClock(); // a paused server gets probes by time
});
afterAll(() => dispatch.stop());
beforeEach(() => dispatch.simulators.clear());

const pushed = () => dispatch.simulators.stats().apns?.total ?? 0;

/** Waits until all devices of a notification wait. Resolves to the attempts that each has used, sorted. */
const waiting = (id: NotificationId, count: number) =>
  eventually(async () => {
    const rows = (await dispatch.rows(id)).filter(({ state }) => state === "waiting");
    const attempts = rows.flatMap(({ devices = [] }) => devices.map((device) => device.attempts));
    expect(attempts).toHaveLength(count);
    return attempts.sort();
  });

/** Lets time pass until a notification has ended with these counts. */
const ends = (projectId: ProjectId, id: NotificationId, counts: Partial<Notification["counts"]>) =>
  eventually(
    async () => {
      dispatch.pass(5_000);
      expect(await dispatch.get(projectId, id)).toMatchObject({ counts: { pending: 0, ...counts } });
    },
    { timeoutMs: 20_000 },
  );

const sendTo = async (projectId: ProjectId, count: number, change: Partial<SendV1> = {}, tag?: string) => {
  const id = await dispatch.send(projectId, change);
  await dispatch.partition(projectId, id, [devices(count, tag)]);
  return id;
};

test.each([
  ["hangs", { provider: "apns", hang: true }, true],
  ["answers 503", { provider: "apns", status: 503, reason: "ServiceUnavailable" }, false],
  ["loses every connection", { provider: "apns", closeSocket: true }, undefined],
] as const)(
  "a provider that %s costs each device one attempt at most, and affects no others",
  async (_, rule, repeat) => {
    const { project, send, partition, simulators, final } = dispatch;
    const [projectId, neighbour] = [await project(), await project()];
    await putOther(dispatch, projectId, "fcm");
    simulators.script([{ ...rule, tokenPrefix: "bad" }]);
    const id = await send(projectId);
    await partition(projectId, id, [devices(120, "bad"), devices(120, "bad"), devices(60, "bad")]);

    // The credential is not proven, so only 50 pushes are in flight at a time. The first of them pause the server.
    const attempts = await waiting(id, 300);
    const used = attempts.filter((count) => count > 0).length;
    expect(pushed()).toBeGreaterThanOrEqual(20);
    expect(pushed()).toBeLessThanOrEqual(150);
    expect(used).toBe(repeat === false ? 0 : pushed());
    expect(Math.max(...attempts)).toBe(repeat === false ? 0 : 1);

    // Another project, and another provider of the same project, are not affected.
    const beside = await sendTo(neighbour, 3);
    expect(await final(neighbour, beside)).toMatchObject({ counts: { accepted: 3 } });
    const android = await send(projectId);
    await partition(projectId, android, [[{ ...devices(1)[0], token: "token-1" } as never]], { platform: "android" });
    expect(await final(projectId, android)).toMatchObject({ counts: { accepted: 1 } });

    // New pushes while the server is paused wait at once, without an attempt.
    const before = pushed();
    const later = await sendTo(projectId, 30);
    expect(await waiting(later, 30)).toEqual(Array.from({ length: 30 }, () => 0));
    expect(pushed()).toBe(before);

    // The server works again.
    simulators.script([]);
    await ends(projectId, id, { devices: 300, accepted: 300 });
    await ends(projectId, later, { accepted: 30 });
    const rows = await dispatch.deliveries(projectId, later);
    expect(rows.every((each) => each.attempts === 1 && !each.possible_repeat)).toBe(true);
    if (repeat !== undefined) {
      const first = await dispatch.deliveries(projectId, id);
      expect(first.filter((each) => each.attempts === 2).every((each) => each.possible_repeat === repeat)).toBe(true);
    }
  },
);

test.each([500, 503])(
  "%i with Retry-After makes its device wait, and no other, until it is one of many",
  async (status) => {
    const { project, simulators, final, pass, partition } = dispatch;
    const projectId = await project();
    const pushesTo = (prefix: string) => simulators.pushes().filter(({ token }) => token.startsWith(prefix));
    const asks = { provider: "apns", status, headers: { "retry-after": "30" } } as const;
    simulators.script([
      { ...asks, tokenPrefix: "bad" },
      { provider: "apns", status: 503, tokenPrefix: "503", times: 1 },
    ]);
    const asked = await sendTo(projectId, 1, {}, "bad");
    await waiting(asked, 1);
    const beside = await sendTo(projectId, 1);
    expect(await final(projectId, beside)).toMatchObject({ counts: { accepted: 1 } });
    // A device that was refused without Retry-After is retried first, so it shows when dispatch has handled the new time.
    const canary = await sendTo(projectId, 1, {}, "503");
    await waiting(canary, 1);
    pass(25_000);
    expect(await final(projectId, canary)).toMatchObject({ counts: { accepted: 1 } });
    expect(pushesTo("bad")).toHaveLength(1);

    const many = await dispatch.send(projectId);
    await partition(projectId, many, [devices(40, "bad")]);
    await waiting(many, 40);
    const blocked = await sendTo(projectId, 1);
    expect(await waiting(blocked, 1)).toEqual([0]);
    simulators.script([]);
    for (const each of [asked, blocked, many]) await ends(projectId, each, { failed: 0, expired: 0 });
  },
);

test("while the provider fails only a few devices are probed, and the others wait in one row", async () => {
  const { project, simulators, pass, rows } = dispatch;
  dispatch.startClock(); // the broker's clock, which does not stop, also starts rows that are due
  const projectId = await project();
  simulators.script([{ provider: "apns", status: 503, tokenPrefix: "bad" }]);
  const opener = await dispatch.send(projectId);
  await dispatch.partition(projectId, opener, [devices(40, "bad")]);
  await waiting(opener, 40);
  const id = await dispatch.send(projectId);
  await dispatch.partition(projectId, id, [devices(200, "bad")]);
  await waiting(id, 200);
  const before = pushed();
  expect((await rows(id)).map(({ generation }) => generation)).toEqual([1, 2]);
  // After the first second, some pushes are probes. They are refused, so the server gets none for two more.
  pass(1_100);
  await eventually(() => expect(pushed()).toBeGreaterThan(before));
  await eventually(async () => {
    const open = (await rows(id)).filter(({ state }) => state !== "final");
    expect(open.map(({ state }) => state)).toEqual(["waiting"]);
  });
  expect(pushed() - before).toBeLessThanOrEqual(10);
  const generations = (await rows(id)).length;
  // The wake-ups of the next seconds find the server paused and change nothing.
  for (let seconds = 0; seconds < 6; seconds++) {
    pass(1_000);
    await eventually(async () => {
      const due = (await rows(id)).find(({ state }) => state === "waiting")?.dueAt;
      expect(due?.getTime()).toBeGreaterThan(dispatch.now().getTime() - 500);
    });
  }
  expect((await rows(id)).length - generations).toBeLessThanOrEqual(1);
  simulators.script([]);
  for (const each of [opener, id]) await ends(projectId, each, { failed: 0, expired: 0 });
});

test("a notification that expires while its server is paused is expired, not failed", async () => {
  const { project, simulators, now, final } = dispatch;
  dispatch.stopClock();
  const projectId = await project();
  simulators.script([{ provider: "apns", status: 503, tokenPrefix: "bad" }]);
  const opener = await dispatch.send(projectId);
  await dispatch.partition(projectId, opener, [devices(40, "bad")]);
  await waiting(opener, 40);
  const short = await sendTo(projectId, 5, { expiresAt: new Date(now().getTime() + 900).toISOString() });
  expect(await final(projectId, short)).toMatchObject({ status: "expired", counts: { devices: 5, expired: 5 } });
  const long = await sendTo(projectId, 5, { expiresAt: new Date(now().getTime() + 8_000).toISOString() });
  await waiting(long, 5);
  dispatch.pass(9_000); // at once: between its end and the first probes it could be sent
  await ends(projectId, long, { devices: 5, expired: 5 });
});
