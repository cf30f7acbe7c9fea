import { DeliveryTrace, DryRun, type Platform, type Provider } from "@herald/contracts";
import { eventually, expectStatus } from "@herald/testing";
import { expect } from "vitest";
import { platforms } from "./harness/answer-cases.ts";
import { checkInvariants, nothingBroken } from "./harness/invariants.ts";
import type { Project } from "./harness/project.ts";
import { newAddress, seed } from "./harness/seed.ts";
import { test } from "./harness/shared-system.ts";
import { deviceOf, payloadOf, wasAccepted } from "./harness/simulators.ts";
import { logOnFailure, type System } from "./harness/system.ts";
import { withRepeat } from "./harness/throttles.ts";

const providers: readonly Provider[] = ["apns", "fcm", "webpush"];
const providerNames: Record<Platform, string> = { ios: "APNs", android: "FCM", web: "the push service" };

let system: System;
let project: Project;
test.beforeAll(({ system: shared }) => {
  system = shared;
});
logOnFailure(() => system);

const register = async (platform: Platform, more: { topics?: string[]; prefix?: string; of?: Project } = {}) => {
  const { prefix, of = project, ...device } = more;
  const address = await newAddress(system.simulators, platform, prefix);
  return (await of.register({ platform, ...address, ...device })).device;
};
const traceOf = async (id: string, device: string, of = project) =>
  DeliveryTrace.parse(expectStatus(await of.call(`GET /notifications/${id}/devices/${device}`), 200).body.data);
const pushesOf = async (id: string) =>
  (await system.simulators.pushes()).filter((push) => payloadOf(push)?.notification_id === id);

test("the trace of one delivery goes from the refusal to the retry to the open, on every platform", async () => {
  const { script } = system.simulators;
  const headers = { "retry-after": "2" }; // usually each is refused once
  await script(providers.map((provider) => ({ provider, tokenPrefix: "aa", status: 503, headers })));
  const waiting = await Promise.all(
    platforms.map(async (platform) => {
      const project = await system.project(`Trace of ${platform}`, providers);
      const device = await register(platform, { topics: ["news"], prefix: "aa", of: project });
      const bystander = await register(platform, { topics: ["sport"], of: project });
      const { id } = await project.send({ title: "Hello", targets: ["topic:news"] });
      await eventually(async () => {
        const trace = await traceOf(id, device.id, project);
        expect(trace).toMatchObject({
          device: { id: device.id, platform, status: "active" },
          matched: "topic:news",
          status: "pending",
          next_attempt_at: expect.any(String),
        });
        for (const attempt of trace.attempts)
          expect(attempt).toMatchObject({ outcome: "deferred", possible_repeat: false });
      });
      return { platform, project, id, device, bystander };
    }),
  );
  // The providers refuse until all three were seen waiting, however long that takes.
  await script([]);
  await Promise.all(
    waiting.map(async ({ platform, project, id, device, bystander }) => {
      await project.final(id, 2 * withRepeat);
      const push = (await pushesOf(id)).find(wasAccepted);
      const { token = "" } = push ? payloadOf(push) : {};
      const open = { body: { project_id: project.id, token } };
      expectStatus(await project.call(`PUT /notifications/${id}/open`, open), 204);
      const trace = await eventually(async () => {
        const trace = await traceOf(id, device.id, project);
        expect(trace.opened_at).toBeDefined();
        return trace;
      });
      expect(trace.status).toBe("accepted");
      expect(trace.next_attempt_at).toBeUndefined();
      const refusals = trace.attempts.slice(0, -1);
      expect(refusals.length).toBeGreaterThan(0);
      for (const { outcome } of refusals) expect(outcome).toBe("deferred");
      // A 503 was not processed, and uses no attempt.
      for (const refusal of refusals) expect(refusal).not.toHaveProperty("attempt");
      expect(trace.attempts.at(-1)).toMatchObject({ attempt: 1, outcome: "accepted", possible_repeat: false });
      const sentence = (pattern: string) => expect.stringMatching(new RegExp(pattern));
      const provider = providerNames[platform];
      expect(trace.explanation).toEqual([
        expect.stringMatching(/^The notification was accepted at /),
        "Its target `topic:news` names the device.",
        ...refusals.map(() => sentence(`^At .* ${provider} could not take it: \\S`)),
        sentence(`^Sent at .* to ${provider}, which accepted it\\.$`),
        expect.stringMatching(/^Opened at /),
      ]);

      const absent = await traceOf(id, bystander.id, project);
      expect(absent).toMatchObject({ status: "not_addressed", attempts: [] });
      expect(absent.matched).toBeUndefined();
      expect(absent.explanation.join(" ")).toContain("It is not subscribed to `news`.");
    }),
  );
});

test("a dry run returns the audience by platform with sample payloads, and sends nothing", async () => {
  project = await system.project("Dry run", providers);
  for (const [index, platform] of platforms.entries())
    for (let count = 0; count <= index; count++) await register(platform, { topics: ["news"] });
  const notification = { title: "Hello", body: "World", targets: ["topic:news", "topic:empty"], dry_run: true };
  const answer = await project.call("POST /notifications", { body: { notification } });
  const dry = DryRun.parse(expectStatus(answer, 200).body.data);
  expect(dry).toMatchObject({
    devices: { total: 6, ios: 1, android: 2, web: 3 },
    unmatched: ["topic:empty"],
    rendered: {
      ios: { aps: { alert: { title: "Hello", body: "World" } } },
      android: { message: { notification: { title: "Hello", body: "World" } } },
      web: { notification: { title: "Hello", body: "World" } },
    },
  });
  expect(await project.notifications()).toEqual([]);
  const pushes = await system.simulators.pushes();
  expect(pushes.filter((push) => payloadOf(push)?.project_id === project.id)).toEqual([]);
});

/** Refusals that no device can cause. A refusal by a Web Push service always concerns the device. */
const refusals = [
  ["ios", { status: 403 }],
  ["android", { status: 401, reason: "UNAUTHENTICATED" }],
] as const;

test.for(refusals)(
  "%s: a refused credential pauses that provider alone, and new settings send what waited",
  async ([platform, refusal]) => {
    project = await system.project(`Refused by ${platform}`, providers);
    // A refusal is confirmed when a second push gets it, too.
    await system.simulators.script([{ tokenPrefix: "ba", ...refusal, times: 2 }]);
    const [refused, ...others] = [
      await register(platform, { prefix: "ba" }),
      ...(await Promise.all(platforms.filter((one) => one !== platform).map((one) => register(one)))),
    ];
    const { id } = await project.send({ title: "Hello", targets: [refused.id] });
    const provider = providers[platforms.indexOf(platform)] as Provider;
    const view = async () =>
      expectStatus(await system.admin(`GET /projects/${project.id}/providers/${provider}`), 200).body.data;
    await eventually(async () => expect(await view()).toMatchObject({ status: "paused" }));
    const late = await project.send({ title: "Later", targets: [refused.id] });
    const beside = await project.send({ title: "Beside", targets: others.map((one) => one.id) });
    expect((await project.final(beside.id)).counts).toMatchObject({ devices: 2, accepted: 2 });
    await eventually(async () =>
      expect((await traceOf(id, refused.id)).attempts).toMatchObject([{ outcome: "paused" }, { outcome: "paused" }]),
    );
    expect((await traceOf(id, refused.id)).explanation.join(" ")).toContain("accepts the credential or the settings");
    expect(await pushesOf(late.id)).toEqual([]);

    await system.putProvider(project, provider);
    for (const one of [id, late.id]) {
      expect((await project.final(one)).counts).toMatchObject({ accepted: 1, failed: 0 });
      expect(await traceOf(one, refused.id)).toMatchObject({ status: "accepted" });
    }
    expect(await view()).toMatchObject({ status: "active" });
  },
);

test("web: a push service that refuses the credential fails one device, and pauses nothing", async () => {
  project = await system.project("Refused by a push service", providers);
  await system.simulators.script([{ tokenPrefix: "ba", status: 401, times: 1 }]);
  const [refused, other] = [await register("web", { prefix: "ba" }), await register("web")];
  const { id } = await project.send({ title: "Hello", targets: [refused.id] });
  expect(await project.final(id)).toMatchObject({ counts: { failed: 1 }, failures: { "topic-mismatch": 1 } });
  const beside = await project.send({ title: "Beside", targets: [other.id] });
  expect((await project.final(beside.id)).counts).toMatchObject({ accepted: 1 });
  const view = await system.admin(`GET /projects/${project.id}/providers/webpush`);
  expect(expectStatus(view, 200).body.data).toMatchObject({ status: "active" });
});

test("a cancel in the middle of a broadcast stops every platform, and the counts stay exact", async () => {
  project = await system.project("Regretful", providers);
  const each = 310;
  for (const platform of platforms) await seed(system, project, each, { platform, topics: ["all-of-them"] });
  // The shared system sends 100 at a time to each provider: a busy machine has four seconds to cancel the last ten.
  await system.simulators.script([{ delayMs: 2_000 }]);
  const { id } = await project.send({ title: "Too early", targets: ["topic:all-of-them"] });
  await eventually(async () => expect((await pushesOf(id)).length).toBeGreaterThan(0), { timeoutMs: 30_000 });
  expectStatus(await project.call(`DELETE /notifications/${id}`), 200);

  const { status, counts } = await project.final(id);
  expect(status).toBe("cancelled");
  expect(counts).toMatchObject({ devices: 3 * each, failed: 0, expired: 0, pending: 0 });
  expect(counts.cancelled).toBeGreaterThan(0);
  expect(counts.accepted + counts.cancelled).toBe(3 * each);
  expect(await checkInvariants(system, project, [{ id, devices: 3 * each }])).toMatchObject({
    ...nothingBroken,
    repeated: 0,
    deliveries: 3 * each,
  });
  const cancelled = (await project.deliveries(id)).filter((row) => row.status === "cancelled");
  expect(new Set(cancelled.map(({ platform }) => platform))).toEqual(new Set(platforms));
  const unsent = new Set(cancelled.map(({ device_id }) => device_id as string));
  expect((await pushesOf(id)).filter((push) => unsent.has(deviceOf(push)))).toEqual([]);
});

test("FCM: Firebase Installation IDs and registration tokens are sent to as what they are", async () => {
  project = await system.project("Installation IDs", providers);
  await system.simulators.script([]);
  const fid = "cAbCdEfGhIjKlMnOpQrStU";
  const { device: byFid } = await project.register({ platform: "android", token: fid, token_kind: "fid" });
  const byToken = await register("android");
  const { id } = await project.send({ title: "Hello", targets: [byFid.id, byToken.id], data: { order: "7" } });
  expect((await project.final(id)).counts).toMatchObject({ devices: 2, accepted: 2 });
  const pushes = await pushesOf(id);
  expect(new Set(pushes.map(({ token }) => token))).toEqual(new Set([fid, byToken.token]));
  expect(pushes.map(payloadOf)).toEqual([
    expect.objectContaining({ order: "7" }),
    expect.objectContaining({ order: "7" }),
  ]);
});

test("FCM serves iPhones and browsers registered with it, once per installation, and counts them under their platform", async () => {
  project = await system.project("FCM everywhere", ["fcm", "apns"]);
  await system.simulators.script([]);
  const fcm = (platform: Platform, token: string, more: object = {}) =>
    project.register({ platform, provider: "fcm", token, topics: ["news"], ...more });
  const iphone = (await fcm("ios", "fcm-of-an-iphone:1")).device;
  const browser = (await fcm("web", "fcm-of-a-browser:1")).device;
  const both = { installation_id: "phone-2" };
  const shadowed = (await fcm("ios", "fcm-of-an-iphone:2", both)).device;
  const own = (
    await project.register({
      platform: "ios",
      ...(await newAddress(system.simulators, "ios")),
      topics: ["news"],
      ...both,
    })
  ).device;
  const content = {
    title: "Hello",
    body: "World",
    badge: 3,
    link_to: "https://example.com/a",
    ttl: 600,
    collapse_id: "c",
  };
  const { id } = await project.send({ ...content, targets: ["topic:news"] });
  expect((await project.final(id)).counts).toMatchObject({ devices: 3, accepted: 3 });

  const pushes = await pushesOf(id);
  expect(pushes.map(({ provider, token }) => [provider, token]).sort()).toEqual(
    [
      ["apns", own.token],
      ["fcm", browser.token],
      ["fcm", iphone.token],
    ].sort(),
  );
  const payload = (token: string) => pushes.find((push) => push.token === token)?.payload;
  expect(payload(iphone.token)).toMatchObject({
    data: { notification_id: id, link_to: "https://example.com/a" },
    apns: {
      headers: { "apns-push-type": "alert", "apns-priority": "10", "apns-collapse-id": "c" },
      payload: { aps: { alert: { title: "Hello", body: "World" }, badge: 3 } },
    },
  });
  expect(payload(browser.token)).toMatchObject({
    webpush: {
      headers: { Urgency: "high", Topic: expect.stringMatching(/^[\w-]{32}$/) },
      notification: { title: "Hello", body: "World", tag: "c" },
      fcm_options: { link: "https://example.com/a" },
    },
  });

  const opened = pushes.find((push) => push.token === iphone.token);
  const { token = "" } = opened ? payloadOf(opened) : {};
  expectStatus(await project.call(`PUT /notifications/${id}/open`, { body: { project_id: project.id, token } }), 204);
  await eventually(async () => {
    const stats = await project.call(`GET /stats?notification=${id}&platform=ios`);
    expect(expectStatus(stats, 200).body.data).toMatchObject({ totals: { sent: 2, opened: 1 } });
  });
  expect((await traceOf(id, iphone.id)).explanation.join(" ")).toContain("to FCM, which accepted it");
  const left = await traceOf(id, shadowed.id);
  expect(left).toMatchObject({ status: "not_addressed", matched: "topic:news" });
  expect(left.explanation.join(" ")).toContain(`The same app installation is reached through ${own.id}`);

  await project.call(`PATCH /devices/${own.id}`, { body: { device: { status: "inactive" } } });
  const later = await project.send({ title: "Later", targets: [shadowed.id, own.id] });
  await project.final(later.id);
  expect((await pushesOf(later.id)).map(({ token: to }) => to)).toEqual([shadowed.token]);
});

test("Web Push: topic, urgency and TTL follow the notification", async () => {
  project = await system.project("Headers", providers);
  await system.simulators.script([]);
  const { id: device } = await register("web");
  const sendAs = async (content: object) => {
    const { id } = await project.send({ title: "Hello", targets: [device], ...content });
    await project.final(id);
    const [push] = await pushesOf(id);
    return { id, headers: push?.headers ?? {} };
  };
  const plain = await sendAs({});
  expect(plain.headers).toMatchObject({ urgency: "high", topic: plain.id, "content-encoding": "aes128gcm" });
  expect(Number(plain.headers.ttl)).toBeGreaterThan(0);

  const { headers } = await sendAs({ ttl: 600, priority: "normal", collapse_id: "scores" });
  expect(headers).toMatchObject({ urgency: "normal", topic: "scores" });
  // The remaining lifetime when the push is sent.
  expect(Number(headers.ttl)).toBeGreaterThan(500);
  expect(Number(headers.ttl)).toBeLessThanOrEqual(600);

  // The id is not base64url, so it is hashed. Pushes with the same id still replace each other.
  const first = await sendAs({ collapse_id: "a-match:1/2" });
  const second = await sendAs({ collapse_id: "a-match:1/2" });
  expect(first.headers.topic).toMatch(/^[\w-]{32}$/);
  expect(second.headers.topic).toBe(first.headers.topic);
  expect(second.id).not.toBe(first.id);
  // Apple would refuse it: no base64url has 13 characters.
  expect((await sendAs({ collapse_id: "order-1234567" })).headers.topic).toMatch(/^[\w-]{32}$/);
});
