import { type Delivery, ProviderPausedV1, ProviderResumedV1 } from "@herald/contracts";
import type { Rule } from "@herald/simulators";
import { eventually, expectStatus } from "@herald/testing";
import { afterAll, describe } from "vitest";
import { eventsOf } from "./harness/compare-events.ts";
import { apnsToken, type Project } from "./harness/project.ts";
import { seed } from "./harness/seed.ts";
import { test } from "./harness/shared-system.ts";
import { payloadOf } from "./harness/simulators.ts";
import { logOnFailure, type System } from "./harness/system.ts";
import { withRepeat } from "./harness/throttles.ts";

const lastYear = Date.now() - 365 * 86_400_000;

/** A provider's answer for one device, and the resulting state of its delivery and the device. */
type Case = {
  says: string;
  /** The prefix of the push token, so that each rule has its own devices. */
  prefix: string;
  rule: Omit<Rule, "provider" | "tokenPrefix">;
  content?: { ttl: number };
  becomes: Partial<Delivery>;
  /** The number of requests to the provider; absent if it is random. */
  requests?: number;
  device: "active" | "inactive";
};

/** The scenario `every-answer` has every code; these also look at what a code leaves for the device's next notification. */
const cases: Case[] = [
  {
    says: "410, unregistered since a moment ago",
    prefix: "a1",
    rule: { status: 410 },
    becomes: { status: "failed", reason: "unregistered", provider_reason: "Unregistered", attempts: 1 },
    requests: 1,
    device: "inactive",
  },
  {
    says: "410, unregistered before the device registered",
    prefix: "a2",
    rule: { status: 410, timestamp: lastYear },
    becomes: { status: "failed", reason: "unregistered-kept", provider_reason: "Unregistered", attempts: 1 },
    requests: 1,
    device: "active",
  },
  {
    says: "400 BadDeviceToken",
    prefix: "a3",
    rule: { status: 400, reason: "BadDeviceToken" },
    becomes: { status: "failed", reason: "token-invalid", provider_reason: "BadDeviceToken", attempts: 1 },
    requests: 1,
    device: "inactive",
  },
  {
    says: "500 for as long as the notification lives",
    prefix: "a8",
    rule: { status: 500 },
    content: { ttl: 8 },
    becomes: { status: "expired", reason: "expired", possible_repeat: false },
    device: "active",
  },
  {
    says: "RST_STREAM with an error, then 200",
    prefix: "aa",
    rule: { rst: "INTERNAL_ERROR", times: 1 },
    becomes: { status: "accepted", attempts: 2, possible_repeat: true },
    requests: 2,
    device: "active",
  },
];

const throttle = { prefix: "ad", seconds: 3 };
const refusal = { prefix: "ae" };
const doubt = { prefix: "ab" };
const spike = { prefix: "af" };
const rules: Rule[] = [
  ...cases.map(({ prefix, rule }) => ({ ...rule, provider: "apns" as const, tokenPrefix: prefix })),
  {
    provider: "apns",
    tokenPrefix: throttle.prefix,
    status: 429,
    headers: { "retry-after": String(throttle.seconds) },
    times: 1,
  },
  // The second one confirms the first.
  { provider: "apns", tokenPrefix: refusal.prefix, status: 403, reason: "InvalidProviderToken", times: 2 },
  { provider: "apns", tokenPrefix: doubt.prefix, status: 403, reason: "InvalidProviderToken", times: 1 },
  { provider: "apns", tokenPrefix: spike.prefix, status: 410 },
];

let system: System;
test.beforeAll(async ({ system: shared }) => {
  system = shared;
  await system.simulators.script(rules);
});
afterAll(() => system.simulators.script([]));
logOnFailure(() => system);

const pushesOf = async (id: string) =>
  (await system.simulators.pushes()).filter((push) => payloadOf(push).notification_id === id);
const statusOf = async (project: Project, id: string) =>
  expectStatus(await project.call(`GET /devices/${id}`), 200).body.data.status;

describe.concurrent("what the provider says about one device", () => {
  test.for(cases)("$says", async ({ prefix, content, becomes, requests, device: state }, { expect }) => {
    const project = await system.project();
    const { device } = await project.register({ token: apnsToken(prefix) });
    const { device: other } = await project.register({ token: apnsToken("51") });
    const { id } = await project.send({ title: "Hello", targets: [device.id], ...content });
    const done = await project.final(id, withRepeat);
    expect(done.counts).toMatchObject({ devices: 1, pending: 0, [becomes.status as string]: 1 });
    expect(done.failures).toEqual(becomes.status === "failed" ? { [becomes.reason as string]: 1 } : {});
    expect(await project.deliveries(id)).toEqual([expect.objectContaining({ device_id: device.id, ...becomes })]);
    const pushes = await pushesOf(id);
    if (requests !== undefined) expect(pushes).toHaveLength(requests);
    expect(new Set(pushes.map(({ headers }) => headers["apns-id"])).size).toBe(1);
    await eventually(async () => expect(await statusOf(project, device.id)).toBe(state));

    // The answer for one device does not affect the other. An inactive device gets no pushes.
    const next = await project.send({ title: "Next", targets: [device.id, other.id], ttl: 15 });
    const after = await project.final(next.id, withRepeat);
    expect(after.unmatched).toEqual(state === "inactive" ? [device.id] : []);
    expect((await pushesOf(next.id)).map(({ token }) => token)).toContain(other.token);
    if (state === "inactive") {
      const again = await project.register({ token: device.token });
      expect(again.device).toMatchObject({ id: device.id, status: "active" });
    }
  });

  test("429 with Retry-After pauses the project's provider for that long, and no other", async ({ expect }) => {
    const [project, neighbour] = [await system.project(), await system.project()];
    const { device } = await project.register({ token: apnsToken(throttle.prefix) });
    const { device: second } = await project.register({ token: apnsToken("51") });
    const { device: foreign } = await neighbour.register({ token: apnsToken("51") });
    const { id } = await project.send({ title: "Hello", targets: [device.id] });
    const [refused] = await eventually(async () => {
      const pushes = await pushesOf(id);
      expect(pushes).not.toEqual([]);
      return pushes;
    });
    const beside = await project.send({ title: "Beside", targets: [second.id] });
    const apart = await neighbour.send({ title: "Apart", targets: [foreign.id] });
    await neighbour.final(apart.id);
    await Promise.all([id, beside.id].map((one) => project.final(one, withRepeat)));

    const [, accepted] = await pushesOf(id);
    const earliest = Date.parse(refused?.at ?? "") + throttle.seconds * 1_000;
    for (const push of [accepted, ...(await pushesOf(beside.id))])
      expect(Date.parse(push?.at ?? "")).toBeGreaterThanOrEqual(earliest);
    expect((await pushesOf(apart.id))[0]?.seq).toBeLessThan(accepted?.seq ?? 0);
    expect(await project.deliveries(id)).toMatchObject([{ status: "accepted", attempts: 1, possible_repeat: false }]);
    expect(await project.deliveries(beside.id)).toMatchObject([{ status: "accepted", attempts: 1 }]);
  });

  test("403 pauses the project's provider, others continue, and new settings send what waited", async ({ expect }) => {
    const [project, neighbour] = [await system.project(), await system.project()];
    const { device } = await project.register({ token: apnsToken(refusal.prefix) });
    const { device: second } = await project.register({ token: apnsToken("51") });
    const { device: foreign } = await neighbour.register({ token: apnsToken("51") });
    const { id } = await project.send({ title: "Hello", targets: [device.id] });
    const provider = async () =>
      expectStatus(await system.admin(`GET /projects/${project.id}/providers/apns`), 200).body.data;
    await eventually(async () => expect(await provider()).toMatchObject({ status: "paused" }));
    const late = await project.send({ title: "Later", targets: [second.id] });
    const apart = await neighbour.send({ title: "Apart", targets: [foreign.id] });
    await neighbour.final(apart.id);
    expect(await statusOf(project, device.id)).toBe("active");
    expect(await pushesOf(late.id)).toEqual([]);
    expect((await project.notification(id)).counts).toMatchObject({ devices: 1, pending: 1, failed: 0 });

    await system.putProvider(project, "apns", { key_id: "E2EKEY0002" });
    for (const one of [id, late.id])
      expect(await project.final(one, withRepeat)).toMatchObject({ counts: { accepted: 1 } });
    expect(await provider()).toMatchObject({ status: "active", settings: { key_id: "E2EKEY0002" } });
    await eventually(async () => {
      expect(await eventsOf(system, project, ProviderPausedV1)).toMatchObject([
        { provider_reason: "InvalidProviderToken" },
      ]);
      expect(await eventsOf(system, project, ProviderResumedV1)).toHaveLength(1);
    });
  });

  test("a single 403 pauses nothing: the push is accepted some seconds later", async ({ expect }) => {
    const project = await system.project();
    const { device } = await project.register({ token: apnsToken(doubt.prefix) });
    const { id } = await project.send({ title: "Hello", targets: [device.id] });
    expect(await project.final(id, withRepeat)).toMatchObject({ counts: { accepted: 1 } });
    expect(await project.deliveries(id)).toMatchObject([{ status: "accepted", attempts: 1, possible_repeat: false }]);
    expect(await pushesOf(id)).toHaveLength(2);
    expect(await eventsOf(system, project, ProviderPausedV1)).toEqual([]);
  });

  test("410 for a third of the devices retires none of them", async ({ expect }) => {
    const project = await system.project();
    const doubtful = await seed(system, project, 30, { prefix: spike.prefix, topics: ["everyone"] });
    await seed(system, project, 60, { prefix: "51", topics: ["everyone"] });
    const { id } = await project.send({ title: "Hello", targets: ["everyone"] });
    expect(await project.final(id)).toMatchObject({
      counts: { devices: 90, accepted: 60, failed: 30 },
      failures: { "unregistered-kept": 30 },
    });
    const active = new Set(
      (await project.devices()).filter(({ status }) => status === "active").map(({ id: one }) => one),
    );
    for (const device of doubtful) expect(active).toContain(device.id);
  });
});
