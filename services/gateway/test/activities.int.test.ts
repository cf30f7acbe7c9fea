import { handleRequest, lastMessage, openBucket } from "@herald/bus";
import {
  ActivityRecord,
  activityKey,
  activityRequests,
  type DeviceId,
  JoinActivityV1,
  pushTokenHash,
} from "@herald/contracts";
import { laterJoin } from "@herald/rules";
import { eventually } from "@herald/testing";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { z } from "zod";
import { fixedLimits } from "../src/fixed-limits.ts";
import { type Answered, adminToken, type GatewayTest, startGatewayTest, type TestProject } from "./gateway-fixture.ts";

/** The limits of Live Activities. */

const active = 4;
const activityBytes = 40_000;
/** A bucket of a hundredth of its size: some values fill it. */
const fillBytes = 512 * 1_024;

let system: GatewayTest;
let project: TestProject;
let ahead = 0;
/** While set, only `pass` moves the clock. */
let stoppedAt: number | undefined;
beforeAll(async () => {
  const now = () => new Date((stoppedAt ?? Date.now()) + ahead);
  system = await startGatewayTest({ now, limits: { activeActivities: active, activityBytes } });
});
afterAll(() => system.stop());
beforeEach(async () => {
  stoppedAt = undefined;
  project = await system.project();
});

/** The gateway counts what a project has at most once a second. */
const pass = (ms = 1_000) => {
  ahead += ms;
};

const base = {
  ...{ attributes_type: "Order", attributes: {}, content_state: { n: 1 }, targets: ["all"] },
  alert: { title: "Your order", body: "It is packed." },
};
/** Takes 13,600 bytes for its targets. */
const large = {
  targets: Array.from({ length: 100 }, (_, at) => `user:${"u".repeat(126)}${at.toString(16).padStart(2, "0")}`),
};
const call = (route: string, activity: object) =>
  system.call(route.replace(" ", " /api/v1/activities/"), { token: project.token, body: { activity } });
const put = (id: string, more: object = {}) => call(`PUT ${id}`, { ...base, ...more });
const patch = (id: string, n = 2) => call(`PATCH ${id}`, { content_state: { n } });
const register = async (): Promise<DeviceId> =>
  (
    await system.call("POST /api/v1/devices", {
      token: project.token,
      body: { device: { platform: "ios", token: "0".repeat(64) } },
    })
  ).body.data.id;
const end = (id: string) => call(`POST ${id}/end`, {});

const isQuota = (answer: Answered, ...words: string[]) => {
  expect([answer.status, answer.problem.type]).toEqual([429, "/docs/errors#quota-exceeded"]);
  for (const word of words) expect(answer.problem.errors[0]).toContain(word);
  expect(Number(answer.headers.get("retry-after"))).toBeGreaterThan(0);
};
const isStarted = (answer: Answered) => expect([answer.status, answer.text]).toEqual([202, expect.any(String)]);
/** A place is counted as free once the broker has dropped its marker, and one that is just taken may count twice. */
const isStartedSoon = (id: string, more: object = {}) =>
  eventually(async () => {
    pass();
    isStarted(await put(id, more));
  });

describe("a project", () => {
  test("has so many active activities; the end of one makes room, and the others can be written", async () => {
    for (let n = 0; n < active; n++) await isStartedSoon(`order-${n}`);
    pass();
    isQuota(await put("one-more"), `${active} active activities`);
    isStarted(await put("order-0"));
    isStarted(await patch("order-0"));
    isStarted(await end("order-0"));
    await isStartedSoon("one-more");
    pass();
    isQuota(await put("two-more"));
    expect(fixedLimits).toMatchObject({ activeActivities: 1_000, activityBytes: 64 * 1_048_576 });
  });

  test("gets a place back at `ends_at`", async () => {
    for (let n = 1; n < active; n++) await isStartedSoon(`order-${n}`);
    pass();
    isStarted(await put("order-0", { ends_at: new Date(Date.now() + ahead + 5_000).toISOString() }));
    pass();
    isQuota(await put("one-more"));
    await isStartedSoon("one-more");
  });

  test("has so many bytes of records, also of activities that have ended; another project has its own", async () => {
    for (const id of ["a", "b"]) {
      isStarted(await put(id, large));
      isStarted(await end(id));
    }
    isQuota(await put("c", large), `${activityBytes} bytes`);
    pass();
    isQuota(await put("c", large));
    // It still exists, and its record may be read and repeated.
    isStarted(await put("a", large));
    project = await system.project();
    isStarted(await put("c", large));
  });
});

describe("an activity", () => {
  test("has limits of size, and the answer says which", async () => {
    const sizes: [object, ...string[]][] = [
      [{ content_state: { fill: "x".repeat(4_100) } }, "activity.content_state", "4096"],
      [{ attributes: { fill: "x".repeat(2_100) }, content_state: { fill: "x".repeat(2_100) } }, "4096"],
      [{ targets: Array.from({ length: 101 }, (_, at) => `user:u${at}`) }, "activity.targets", "100"],
      [{ ...large, attributes: { fill: "x".repeat(3_300) } }, "activity: takes", "16384"],
    ];
    for (const [more, ...words] of sizes) {
      const { status, problem } = await put("order", more);
      expect(status).toBe(422);
      for (const word of words) expect(problem.errors.join("\n")).toContain(word);
    }
    // The largest that are accepted.
    isStarted(await put("targets", { targets: Array.from({ length: 100 }, (_, at) => `user:u${at}`) }));
    const state = { fill: "x".repeat(4_096 - JSON.stringify({ fill: "" }).length - JSON.stringify({}).length) };
    const exact = await put("state", { start: false, alert: undefined, content_state: state });
    // Herald's own fields leave less room in Apple's payload than the state may have.
    expect([exact.status, exact.problem.errors?.join()]).toEqual([422, expect.stringMatching(/renders to \d+ bytes/)]);
  });

  test("has one version a second and five at once", async () => {
    stoppedAt = Date.now();
    isStarted(await put("order"));
    const answers = [];
    for (let n = 2; n <= 6; n++) answers.push(await patch("order", n));
    expect(answers.map(({ status }) => status)).toEqual([202, 202, 202, 202, 429]);
    expect(answers[4]?.problem.type).toBe("/docs/errors#rate-limited");
    expect(answers[4]?.headers.get("retry-after")).toBe("1");
    pass();
    const next = await patch("order", 6);
    expect(next.body.data.version).toBe(6);
    pass(60_000);
    const later = [];
    for (let n = 7; n <= 12; n++) later.push((await patch("order", n)).status);
    expect(later).toEqual([202, 202, 202, 202, 202, 429]);
  });
});

test("a device that replaces its token gets each version at once, and otherwise the newest once a minute", async () => {
  const deviceId = await register();
  // Ten seconds before the end of the device's minute.
  stoppedAt = laterJoin(deviceId, new Date(Date.now() + ahead)).getTime() - 10_000 - ahead;
  const follow = async (digit: string) => {
    const answer = await system.call(`PUT /api/v1/devices/${deviceId}/tokens/activity/late`, {
      token: project.token,
      body: { token: { token: digit.repeat(64) } },
    });
    expect(answer.status).toBe(204);
    const subject = JoinActivityV1.subject({ projectId: project.id, activityId: "late" });
    const found = await lastMessage(system.bus, "PUSH_CMD", subject, JoinActivityV1);
    return found && "deviceId" in found.data ? { hash: found.data.tokenHash, sendAt: found.data.sendAt } : undefined;
  };
  expect(await follow("1")).toBeUndefined();
  isStarted(await put("late", { start: false }));
  expect(await follow("2")).toEqual({ hash: pushTokenHash("2".repeat(64)), sendAt: undefined });
  const later = { hash: pushTokenHash("3".repeat(64)), sendAt: new Date(stoppedAt + ahead + 10_000).toISOString() };
  expect(await follow("3")).toEqual(later);
  // One message for all tokens until then.
  expect(await follow("4")).toEqual(later);
  isStarted(await patch("late"));
  expect(await follow("5")).toEqual({ hash: pushTokenHash("5".repeat(64)), sendAt: undefined });
  // The message of a minute is not for a token that may come after its push.
  pass(6_000);
  expect((await follow("6"))?.sendAt).toBe(new Date(stoppedAt + ahead - 6_000 + 70_000).toISOString());
});

test("a token whose state could not be sent gets it with a repeat, and costs nothing once it has it", async () => {
  const limits = (sends: number) =>
    system.call(`PATCH /admin/v1/projects/${project.id}/limits`, { token: adminToken, body: { limits: { sends } } });
  const used = async () =>
    (await system.call(`GET /admin/v1/projects/${project.id}/limits`, { token: adminToken })).body.data.find(
      ({ name }: { name: string }) => name === "sends",
    ).used;
  const deviceId = await register();
  const follow = async () => {
    const answer = await system.call(`PUT /api/v1/devices/${deviceId}/tokens/activity/late`, {
      token: project.token,
      body: { token: { token: "1".repeat(64) } },
    });
    expect([answer.status, answer.headers.get("retry-after")]).toEqual([204, null]);
    const subject = JoinActivityV1.subject({ projectId: project.id, activityId: "late" });
    return (await lastMessage(system.bus, "PUSH_CMD", subject, JoinActivityV1))?.at;
  };
  isStarted(await put("late", { start: false }));
  await limits(1);
  await eventually(async () => expect((await put("more")).status).toBe(429));
  expect(await follow()).toBeUndefined();
  pass(61_000);
  await limits(1_000);
  const joined = await eventually(async () => {
    const at = await follow();
    expect(at).toBeDefined();
    return at;
  });
  const before = await used();
  for (const ms of [1_000, 61_000]) {
    pass(ms);
    expect(await follow()).toEqual(joined);
  }
  expect(await used()).toBe(before);
});

test("a project that has little begins activities while others use the room up, and one that has much does not", async () => {
  const others = openBucket(system.bus, "push_activities", z.object({ fill: z.string() }));
  const { maxBytes } = await others.fill();
  const share = Math.floor(maxBytes / 1_024);
  const keys: string[] = [];
  for (let full = await others.fill(); full.bytes < maxBytes * 0.76; full = await others.fill()) {
    const key = `more.${keys.length}`;
    await others.put(key, { fill: "x".repeat(fillBytes) });
    keys.push(key);
  }
  pass();
  isStarted(await put("first", large));
  pass();
  isQuota(await put("large", large), `${share} bytes`, "the room of all projects is nearly used up");
  isStarted(await patch("first"));
  for (const key of keys) await others.delete(key);
  await isStartedSoon("large", large);
});

test("while the room of all projects is used up, none begins; those that run are written and end", async () => {
  isStarted(await put("running"));
  const others = openBucket(system.bus, "push_activities", z.object({ fill: z.string() }));
  const keys: string[] = [];
  for (let fill = await others.fill(); fill.bytes < fill.maxBytes * 0.91; fill = await others.fill()) {
    const key = `other.${keys.length}`;
    await others.put(key, { fill: "x".repeat(fillBytes) });
    keys.push(key);
  }
  pass();
  const refused = await put("next");
  expect([refused.status, refused.problem.type]).toEqual([503, "/docs/errors#queue-full"]);
  expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
  isStarted(await put("running"));
  isStarted(await patch("running"));
  isStarted(await end("running"));
  for (const key of keys) await others.delete(key);
  await isStartedSoon("next");
});

test("an app that starts an activity reads the state that its channel continues, and no channel that ended meanwhile", async () => {
  const deviceId = await register();
  const channel = "Y2hhbm5lbA==";
  const records = openBucket(system.bus, "push_activities", ActivityRecord);
  const store = async (id: string, channels: ActivityRecord["channels"]) => {
    const key = activityKey({ projectId: project.id, id });
    const entry = await records.get(key);
    if (entry) await records.update(key, { ...entry.value, channels }, entry.revision);
  };
  let meanwhile = async (_id: string): Promise<unknown> => undefined;
  const dispatch = handleRequest(system.bus, activityRequests.channel, async ({ activityId }) => {
    await store(activityId, { "com.example.app/sandbox": { askedAt: 0, id: channel } });
    await meanwhile(activityId);
    return { id: channel };
  });
  const read = async (id: string) => {
    await isStartedSoon(id, { start: false, alert: undefined, via: "channel" });
    const path = `GET /api/v1/devices/${deviceId}/activities/${id}`;
    const { version, status, channel_id } = (await system.call(path, { token: project.token })).body.data;
    return [version, status, channel_id];
  };
  try {
    expect(await read("match-1")).toEqual([1, "active", channel]);
    meanwhile = (id) => patch(id);
    expect(await read("match-2")).toEqual([2, "active", channel]);
    meanwhile = end;
    expect(await read("match-3")).toEqual([2, "ended", undefined]);
    // A version that is written by now would not be broadcast.
    meanwhile = (id) => store(id, {});
    expect(await read("match-4")).toEqual([1, "active", undefined]);
  } finally {
    await dispatch.stop();
  }
});
