import { createECDH, randomBytes } from "node:crypto";
import type { Notification, Platform } from "@herald/contracts";
import type { Push, Rule } from "@herald/simulators";
import { eventually, expectStatus, request } from "@herald/testing";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { inParallel } from "../harness/in-parallel.ts";
import { apnsToken, type Content, type Project } from "../harness/project.ts";
import { newAddress, seed } from "../harness/seed.ts";
import { deviceOf, payloadOf, wasAccepted } from "../harness/simulators.ts";
import { logOnFailure, type System, startSystem } from "../harness/system.ts";
import { show } from "./figures.ts";
import { scale } from "./scale.ts";
import { startStrangePushService } from "./strange-push-service.ts";

let system: System;
let strange: Awaited<ReturnType<typeof startStrangePushService>>;
beforeAll(async () => {
  strange = await startStrangePushService("push.stranger.example");
  system = await startSystem({ env: { ...strange.env, HERALD_DISPATCH_REQUEST_TIMEOUT: "5s" } });
});
afterAll(async () => {
  await system?.stop();
  await strange?.close();
});
beforeEach(() => system.simulators.script([]));
logOnFailure(() => system);

const ofOthers = scale(500, 60);
const ofStrangers = scale(200, 30);
/** A repeat comes at a random time within ten seconds, and its timer has a fallback. */
const withRepeat = 60_000;

/** Registers like an unknown app: without a credential, and with arbitrary fields. */
async function registerUnknown(project: Project, platform: Platform, device: Record<string, unknown>): Promise<void> {
  const body = { project_id: project.id, platform, ...device };
  expectStatus(await request(system.gateway, "PUT /api/v1/identification", { body }), 201);
}

const register = (project: Project, platform: Platform, all: readonly Record<string, unknown>[]) =>
  inParallel(all, 8, (device) => registerUnknown(project, platform, device));

const several = (prefix: string, change: Record<string, unknown> = {}) =>
  Array.from({ length: ofStrangers }, () => ({ identifier: apnsToken(prefix), ...change }));

const subscriptionKeys = () => {
  const pair = createECDH("prime256v1");
  return { p256dh: pair.generateKeys().toString("base64url"), auth: randomBytes(16).toString("base64url") };
};

const providerOfProject = async ({ id }: Project, provider: string) =>
  expectStatus(await system.admin(`GET /projects/${id}/providers/${provider}`), 200).body.data;

/** Sends to the strangers first, then to all devices. Each honest device must get its pushes. */
async function sendToAll(project: Project, strangers: readonly string[]): Promise<Notification> {
  for (const token of strangers.slice(0, 3))
    await project.send({ title: "To a stranger", targets: [`token:${token}`], ttl: 30 });
  const { id } = await project.send({ title: "To all", targets: ["all"], ttl: 30 });
  return project.final(id, 120_000);
}

test("devices in APNs' other environment fail alone; the provider continues", async ({ task }) => {
  const reasons: [number, string][] = [
    [403, "BadEnvironmentKeyIdInToken"],
    [403, "BadCertificateEnvironment"],
    [403, "InvalidProviderToken"],
    [400, "TopicDisallowed"],
  ];
  const rules = reasons.map(([status, reason], at): Rule => {
    return { provider: "apns", tokenPrefix: `bad${at}`, status, reason };
  });
  await system.simulators.script(rules);
  const project = await system.project("Environments", []);
  await system.putProvider(project, "apns", { environment: "production" });
  const strangers = reasons.flatMap((_, at) => several(`bad${at}`, { environment: "sandbox" }));
  await register(project, "ios", strangers);
  await seed(system, project, ofOthers);
  const { counts, failures } = await sendToAll(
    project,
    strangers.map(({ identifier }) => identifier),
  );
  expect(await providerOfProject(project, "apns")).toMatchObject({ status: "active" });
  expect(counts).toMatchObject({ accepted: ofOthers, failed: strangers.length });
  expect(failures).toEqual({ "environment-mismatch": strangers.length });
  show(task, {
    strangers: strangers.length,
    "others reached": `${counts.accepted} of ${ofOthers}`,
    provider: "active",
  });
});

test("FCM tokens of another kind or app fail alone; the provider continues", async ({ task }) => {
  const answers: [string, number, string, Record<string, unknown>][] = [
    ["bad0", 401, "THIRD_PARTY_AUTH_ERROR", {}],
    ["bad1", 403, "SENDER_ID_MISMATCH", {}],
    ["bad2", 404, "NOT_FOUND", {}],
  ];
  await system.simulators.script(
    answers.map(([tokenPrefix, status, reason]): Rule => ({ provider: "fcm", tokenPrefix, status, reason })),
  );
  const project = await system.project("Kinds", ["fcm"]);
  const strangers = answers.flatMap(([prefix, , , change]) => several(prefix, change));
  await register(project, "android", strangers);
  await seed(system, project, ofOthers, { platform: "android" });
  const { counts, failures } = await sendToAll(
    project,
    strangers.map(({ identifier }) => identifier),
  );
  expect(await providerOfProject(project, "fcm")).toMatchObject({ status: "active" });
  expect(counts).toMatchObject({ accepted: ofOthers, failed: strangers.length });
  expect(failures).toEqual({
    "token-kind-mismatch": ofStrangers,
    "topic-mismatch": ofStrangers,
    "token-invalid": ofStrangers,
  });
  show(task, {
    strangers: strangers.length,
    "others reached": `${counts.accepted} of ${ofOthers}`,
    provider: "active",
  });
});

test("failing installation ids do not open the circuit breaker", async ({ task }) => {
  // Scripts of the simulator match only the token, and installation ids begin with one of these letters.
  await system.simulators.script([{ provider: "fcm", tokenPrefix: "fbad", status: 500, reason: "INTERNAL" }]);
  const project = await system.project("Installations", ["fcm"]);
  const strangers = Array.from({ length: ofStrangers }, () => ({
    identifier: `fbad${randomBytes(9).toString("hex")}`,
    token_kind: "fid",
  }));
  await register(project, "android", strangers);
  const before = await project.send({ title: "To strangers", targets: ["all"], ttl: 60 });
  await eventually(
    async () => expect((await project.notification(before.id)).counts).toMatchObject({ pending: ofStrangers }),
    { timeoutMs: 30_000 },
  );
  await eventually(async () =>
    expect((await seen({ provider: "fcm", status: 500 })).length).toBeGreaterThanOrEqual(20),
  );
  const [first] = await seed(system, project, 1, { platform: "android" });
  const { id } = await project.send({ title: "To a token", targets: [first?.id ?? ""] });
  expect((await project.final(id)).counts).toMatchObject({ accepted: 1 });
  // A send leaves its notification for rows of its own when a device must wait.
  const { client, prefix } = system.registryDatabase;
  const rows = client.db(`${prefix}_dispatch`).collection("deliveries");
  await eventually(async () => expect(await rows.countDocuments({ notificationId: before.id })).toBeGreaterThan(0));
  expect(await rows.countDocuments({ notificationId: id })).toBe(0);
  show(task, { strangers: strangers.length, "others reached": "1 of 1" });
});

const seen = (filter: Parameters<System["simulators"]["pushes"]>[0]): Promise<Push[]> =>
  system.simulators.pushes(filter);

test("a stranger's push service that refuses, fails and throttles delays no other device", async ({ task }) => {
  const project = await system.project("Subscriptions", ["webpush"]);
  // The kinds share an origin, so the throttling one comes last.
  const kinds = ["refuses", "forbids", "fails", "waits", "throttles"] as const;
  const strangers = kinds.flatMap((kind) =>
    Array.from({ length: ofStrangers }, (_, at) => ({
      identifier: strange.endpoint(kind, at),
      keys: subscriptionKeys(),
    })),
  );
  await register(project, "web", strangers);
  // A subscription with another key at the push service that all devices use.
  const { endpoint } = await system.simulators.subscribe("bad");
  await system.simulators.script([{ provider: "webpush", tokenPrefix: "bad", status: 403 }]);
  await register(project, "web", [{ identifier: endpoint, keys: subscriptionKeys() }]);
  const firsts = kinds.map((kind) => strange.endpoint(kind, 0));
  for (const token of [endpoint, ...firsts])
    await project.send({ title: "To a stranger", targets: [`token:${token}`], ttl: 30 });
  // Before the provider has accepted the credential for any device.
  await eventually(() => {
    for (const kind of kinds) expect(strange.came()[kind] ?? 0).toBeGreaterThan(0);
  });
  await seed(system, project, ofOthers, { platform: "web" });
  const { id } = await project.send({ title: "To all", targets: ["all"], ttl: 20 });
  const { counts } = await project.final(id, 120_000);
  expect(await providerOfProject(project, "webpush")).toMatchObject({ status: "active" });
  expect(counts).toMatchObject({ devices: ofOthers + strangers.length + 1, accepted: ofOthers });
  // On a busy machine a request may not be answered in time; behind a throttle, each device would wait for its second attempt.
  const accepted = (await project.deliveries(id)).filter(({ status }) => status === "accepted");
  expect(accepted.filter(({ attempts }) => attempts === 1).length).toBeGreaterThan(ofOthers / 2);
  show(task, {
    strangers: strangers.length + 1,
    "others reached": `${counts.accepted} of ${ofOthers}`,
    "requests to the stranger": Object.values(strange.came()).reduce((sum, one) => sum + one, 0),
  });
});

/** Pushes that can be decrypted, so without those for a stranger's key. */
const readable = async (filter: Parameters<typeof seen>[0]) =>
  (await seen(filter)).filter(({ payload }) => payload !== null);

/** The payload fields that control the display: Android's part for FCM, or the fields that the service worker reads. */
type Shown = {
  readonly android?: { readonly notification?: Record<string, unknown> };
  readonly notification?: Record<string, unknown>;
};

/** The number of notifications on a screen: a push replaces an earlier one with the same tag. */
const onScreen = (pushes: readonly Push[]): number => {
  const tags = pushes.map(({ payload }, at) => {
    const { android, notification } = payload as Shown;
    return (android?.notification ?? notification)?.tag ?? `none ${at}`;
  });
  return new Set(tags).size;
};

/** Of push tokens whose first push is broken off. */
const once = "0ce0";

test.for(["android", "web"] as const)("a repeat on %s replaces the first notification", async (platform, { task }) => {
  const provider = platform === "android" ? "fcm" : "webpush";
  const project = await system.project("Repeats", [provider]);
  const address = await newAddress(system.simulators, platform, once);
  const { device } = await project.register({ ...address, platform });
  await system.simulators.script([{ provider, tokenPrefix: once, rst: "INTERNAL_ERROR", times: 1 }]);
  const { id } = await project.send({ title: "Once", targets: [device.id] });
  await project.final(id, withRepeat);
  const pushes = (await readable({ provider })).filter((push) => deviceOf(push) === device.id);
  expect(pushes.length).toBe(2);
  expect(onScreen(pushes)).toBe(1);
  show(task, { pushes: 2, "on the screen": onScreen(pushes) });
});

test("category, badge and action reach web and Android in their own fields", async ({ task }) => {
  const project = await system.project("Fields", ["fcm", "webpush"]);
  for (const platform of ["android", "web"] as const)
    await project.register({ ...(await newAddress(system.simulators, platform)), platform });
  const arrived = async (content: Partial<Content>) => {
    const { id } = await project.send({ title: "Fields", targets: ["all"], ...content });
    await project.final(id);
    const mine = (await readable({})).filter((push) => payloadOf(push).notification_id === id);
    const of = (provider: string) => mine.find((push) => push.provider === provider)?.payload as Shown | undefined;
    return { fcm: of("fcm")?.android?.notification, web: of("webpush") };
  };
  const bare = await arrived({ badge: 3, category: "ORDER" });
  expect(bare.fcm).not.toHaveProperty("click_action");
  expect(bare.web?.notification).not.toHaveProperty("badge");
  const badge = "https://example.com/badge.png";
  const icon = "https://example.com/icon.png";
  const full = await arrived({
    ...{ badge: 3, category: "ORDER", click_action: "OPEN_ORDER", badge_image: badge, icon },
    ...{ urgency: "passive", android_channel: "orders" },
  });
  expect(full.fcm).toMatchObject({
    ...{ click_action: "OPEN_ORDER", notification_count: 3 },
    ...{ channel_id: "orders", notification_priority: "PRIORITY_LOW" },
  });
  expect(full.web).toMatchObject({ notification: { badge, icon }, app_badge: 3 });
  show(task, { fields: "category, click_action, badge, badge_image, icon, urgency, android_channel" });
});

test("the checks above saw accepted pushes and refused ones", async () => {
  // Checks the attack itself: with rules that match nothing, all checks above would pass.
  expect((await seen({})).some(wasAccepted)).toBe(true);
  expect(strange.came().refuses ?? 0).toBeGreaterThan(0);
});
