import { type DataOf, NotificationUnopenedV1 } from "@herald/contracts";
import { eventually, expectStatus, request } from "@herald/testing";
import { expect } from "vitest";
import { seedDevices } from "../../services/registry/test/seed-devices.ts";
import { eventsOf } from "../harness/compare-events.ts";
import { inParallel } from "../harness/in-parallel.ts";
import { apnsToken, type Project } from "../harness/project.ts";
import { payloadOf } from "../harness/simulators.ts";
import { logOnFailure, type System } from "../harness/system.ts";
import { show } from "./figures.ts";
import { peakMemory } from "./memory.ts";
import { startOrdinary } from "./ordinary.ts";
import { scale } from "./scale.ts";
import { test } from "./shared-system.ts";

let system: System;
test.beforeAll(async ({ system: shared }) => {
  system = shared;
});
logOnFailure(() => system);

/** The shortest time, a minute until Herald looks again, and some for a busy machine. */
const eventsWithinMs = 240_000;

type Unopened = DataOf<typeof NotificationUnopenedV1>;
const published = (project: Project) => eventsOf<Unopened>(system, project, NotificationUnopenedV1);
const hasEvents = (project: Project, count: number) =>
  eventually(
    async () => {
      const events = await published(project);
      if (events.length < count) throw new Error(`${events.length} of ${count} events`);
      return events;
    },
    { timeoutMs: eventsWithinMs },
  );

const open = async (project: Project, id: string, token: string) => {
  const body = { project_id: project.id, token };
  return (await request(`${system.gateway}/api/v1`, `PUT /notifications/${id}/open`, { body })).status;
};

test("follow-ups with foreign ids, forged opens and phones that changed hands: events name only whom a send was for", async ({
  task,
}) => {
  const [project, other] = [await system.project("Escalating"), await system.project("Foreign")];
  for (const bad of [59, 604_801, -1, 0, 1.5, 1e308, "60", null, [60], { seconds: 60 }, true, "__proto__"]) {
    const notification = { title: "x", targets: ["user:ann"], escalate_after: bad };
    const one = expectStatus(await project.call("POST /notifications", { body: { notification } }), 422);
    expect(one.text).toContain("escalate_after");
    const batch = { notifications: [notification, { title: "x", targets: ["user:ann"] }] };
    const many = expectStatus(await project.call("POST /notifications/batch", { body: batch }), 202, 207);
    expect(many.body.data[0].errors.join()).toContain("escalate_after");
  }
  const foreign = await other.register({ user_id: "ann" });
  const [phone, watch] = [await project.register({ user_id: "ann" }), await project.register({ user_id: "cem" })];
  const targets = [
    ...["user:ann", "user:cem", "user:stranger"],
    ...[`device:${foreign.device.id}`, `token:${foreign.device.token}`, `device:${phone.device.id}`],
  ] as const;
  const send = (by: Project) => by.send({ title: "Read me", targets: [...targets], escalate_after: 60 });
  const [{ id }, { id: theirs }] = [await send(project), await send(other)];
  for (const [by, one] of [
    [project, id],
    [other, theirs],
  ] as const)
    await by.final(one);
  const tokenOf = async (token: string, notification: string) => {
    const pushes = await system.simulators.pushes({ token });
    const push = pushes.find((one) => payloadOf(one).notification_id === notification);
    return push ? payloadOf(push).token : "none";
  };
  // Of the other project, of another notification, and of another device.
  const foreignToken = await tokenOf(foreign.device.token, theirs);
  const ownToken = await tokenOf(watch.device.token, id);
  const forged = ownToken.replace(/dev_.{26}/, phone.device.id);
  expect(await open(project, id, foreignToken)).toBe(403);
  expect(await open(other, id, foreignToken)).toBe(403);
  expect(await open(project, id, forged)).toBe(403);
  expect(await open(project, id, ownToken)).toBe(204);
  // The phone is another user's now: it was sent to Ann.
  expectStatus(await project.call(`PUT /users/mallory/devices/${phone.device.id}`), 200);

  const brief = (events: readonly Unopened[]) =>
    events.map(({ user_id, device_id, reason }) => `${user_id ?? device_id} ${reason}`).sort();
  expect(brief(await hasEvents(project, 3))).toEqual(
    ["ann unopened", "stranger no-active-device", `${foreign.device.id} no-active-device`].sort(),
  );
  expect(brief(await hasEvents(other, 4))).toEqual(
    ["ann unopened", "cem no-active-device", "stranger no-active-device", `${phone.device.id} no-active-device`].sort(),
  );
  show(task, { events: 7 });
});

test("follow-ups of a thousand users in each of many sends, and of a user with thousands of devices: all events, and ordinary sends go on", async ({
  task,
}) => {
  const [project, neighbour] = [await system.project("Huge"), await system.project("Beside the huge")];
  const { device } = await neighbour.register();
  const [sends, owned] = [scale(40, 6), scale(20_000, 3_000)];
  const devices = Array.from({ length: owned }, () => ({
    token: apnsToken(),
    platform: "ios" as const,
    user: { by: "project" as const, userId: "hoarder" },
  }));
  const { client, name } = system.registryDatabase;
  for await (const _ of seedDevices(client.db(name), project.id, devices));
  const users = Array.from({ length: 999 }, (_, at) => `user:u-${at}` as const);
  const targets = ["user:hoarder" as const, ...users];
  const before = system.services.dispatch.pid();
  const ordinary = startOrdinary(neighbour, device.id);
  const attack = async () => {
    const content = { title: "Read me", targets, escalate_after: 60 };
    await inParallel(Array(sends).fill(content), 4, (one) => project.send(one));
    return hasEvents(project, sends * targets.length);
  };
  const running = attack();
  const peak = await peakMemory(system, "dispatch", running);
  const { done, failed } = await ordinary.stop();
  expect(failed).toEqual([]);
  const events = await running;
  expect(events).toHaveLength(sends * targets.length);
  expect(events.filter(({ user_id }) => user_id === "hoarder").map(({ reason }) => reason)).toEqual(
    Array(sends).fill("unopened"),
  );
  expect(system.services.dispatch.pid()).toBe(before);
  expect(peak).toBeLessThan(600);
  show(task, {
    sends,
    users: sends * targets.length,
    "devices of a user": owned,
    "ordinary sends": done,
    "peak MB": peak,
  });
});
