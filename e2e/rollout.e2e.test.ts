import { NotificationPausedV1 } from "@herald/contracts";
import { eventually, expectStatus } from "@herald/testing";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { eventsOf } from "./harness/compare-events.ts";
import type { Content, Project } from "./harness/project.ts";
import { seed } from "./harness/seed.ts";
import { deviceOf, payloadOf } from "./harness/simulators.ts";
import { logOnFailure, type System, startSystem } from "./harness/system.ts";

let system: System;
let project: Project;
beforeAll(async () => {
  system = await startSystem();
  project = await system.project("Rollouts");
});
afterEach(() => system.simulators.script([]));
afterAll(() => system?.stop());
logOnFailure(() => system);

const pushesOf = async (id: string) =>
  (await system.simulators.pushes()).filter((push) => payloadOf(push).notification_id === id);

test("a broadcast whose devices fail stops by itself, and goes on with the others when it is resumed", async () => {
  const good = await seed(system, project, 4_000, { prefix: "600d", topics: ["some-fail"] });
  const bad = await seed(system, project, 1_000, { prefix: "bad0", topics: ["some-fail"] });
  await system.simulators.script([{ tokenPrefix: "bad0", status: 413 }]);
  const rollout = { stop_if: { failed: 0.05 } };
  const { id } = await project.send({ title: "Too large", targets: ["topic:some-fail"], rollout });
  const paused = await eventually(async () => {
    const found = await project.notification(id);
    expect(found).toMatchObject({ status: "paused", counts: { pending: 0 } });
    return found;
  });
  expect(paused.paused).toMatchObject({
    reason: expect.stringMatching(/^\d+ of \d+ devices failed: \d+.* more than 5 %$/),
  });
  expect(paused.paused).not.toHaveProperty("by");
  const { released = 0, outcomes = 0, failed = 0, audience = 0 } = paused.rollout ?? {};
  expect(released).toBeLessThan(good.length + bad.length);
  expect([released, outcomes, failed]).toEqual([paused.counts.devices, released, paused.counts.failed]);
  expect(Math.abs(audience - 5_000)).toBeLessThan(1_500);

  expectStatus(await project.call(`POST /notifications/${id}/resume`), 200);
  // The others fail as often: it stops again, by those alone.
  await eventually(async () => {
    const { status, rollout: later } = await project.notification(id);
    expect([status, (later?.released ?? 0) > released]).toEqual(["paused", true]);
  });
  await system.simulators.script([]);
  await eventually(async () => {
    expectStatus(await project.call(`POST /notifications/${id}/resume`), 200, 409);
    expect((await project.notification(id)).completed_at).toBeDefined();
  });
  const final = await project.final(id);
  expect(final).toMatchObject({ status: "completed", rollout: { phase: "done", released: 5_000 } });
  const sent = (await pushesOf(id)).map(deviceOf);
  expect(new Set(sent).size).toBe(5_000);
  expect(sent).toHaveLength(5_000);
  const events = await eventsOf<{ reason: string; by?: object }>(system, project, NotificationPausedV1);
  expect(events.length).toBeGreaterThanOrEqual(2);
  for (const { reason, by } of events) expect([reason, by]).toEqual(["failures", undefined]);
});

test("a speed is kept, and its parts have each device once", async () => {
  const devices = await seed(system, project, 300, { prefix: "5eed", topics: ["paced"] });
  const rollout = { per_minute: 1_200 };
  const { id } = await project.send({ title: "Slowly", targets: ["topic:paced"], rollout });
  const final = await project.final(id, 60_000);
  expect(final).toMatchObject({ counts: { accepted: 300 }, rollout: { ...rollout, released: 300, outcomes: 300 } });
  const pushes = await pushesOf(id);
  expect(pushes.map(deviceOf).sort()).toEqual(devices.map((device) => device.id).sort());
  // By the times at which they came: no ten seconds have more than two thirds of the devices, and a part that ends with the ring.
  const times = pushes.map(({ at }) => Date.parse(at)).sort((one, other) => one - other);
  expect((times.at(-1) ?? 0) - (times[0] ?? 0)).toBeGreaterThanOrEqual(300 * (60_000 / 1_200) - 10_000);
});

describe("is refused", () => {
  const problemsOf = async (content: Partial<Content>): Promise<string[]> => {
    const notification = { title: "Hello", targets: ["topic:paced"], ...content };
    return expectStatus(await project.call("POST /notifications", { body: { notification } }), 422).body.errors;
  };

  test("a speed at which the audience takes too long, in a dry run, too", async () => {
    await seed(system, project, 900, { prefix: "ab1e", topics: ["slow"] });
    const content = { targets: ["topic:slow"], rollout: { per_minute: 2 } };
    const expected = ["notification.rollout.per_minute: must be at least 3 for an audience of about 900 devices"];
    expect(await problemsOf(content)).toEqual(expected);
    expect(await problemsOf({ ...content, dry_run: true } as Partial<Content>)).toEqual(expected);
  });

  test.each([
    [{ rollout: {} }, "notification.rollout: needs `canary`, `per_minute` or `stop_if`"],
    [{ rollout: { canary: { share: 0 } } }, "notification.rollout.canary.share: must be from 1/4096 to 0.5"],
    [
      { rollout: { canary: { share: 0.1, wait: "99w" } } },
      "notification.rollout.canary.wait: must be from `1m` to `24h`, such as `10m`",
    ],
    [
      { rollout: { per_minute: 60 }, send_at: "2040-01-31T09:00:00", time_zone: "device" },
      'notification.rollout: cannot be set beside `time_zone: "device"`, which sends in waves of its own',
    ],
    [
      { rollout: { per_minute: 60 }, targets: undefined, recipients: [{ target: "user:u_1" }] },
      "notification.rollout: cannot be set beside `recipients`: send to `targets`",
    ],
  ])("%j", async (content, problem) => {
    expect(await problemsOf(content as unknown as Partial<Content>)).toContain(problem);
  });

  test("in a batch", async () => {
    const notifications = [{ title: "Hello", targets: ["topic:paced"], rollout: { per_minute: 60 } }];
    const { body } = await project.call("POST /notifications/batch", { body: { notifications } });
    expect(body.errors).toEqual([
      "notifications.0.rollout: is not accepted in a batch; use POST /api/v1/notifications",
    ]);
  });
});

test("a dry run says how it would begin and how long it takes", async () => {
  const rollout = { canary: { share: 0.25, wait: "5m" }, per_minute: 60 };
  const notification = { title: "Hello", targets: ["topic:paced"], rollout, dry_run: true };
  const answer = expectStatus(await project.call("POST /notifications", { body: { notification } }), 200);
  expect(answer.body.data.rollout).toEqual({ canary_devices: 75, minutes: 9 });
});
