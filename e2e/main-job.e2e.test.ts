import { eventually, expectStatus, request } from "@herald/testing";
import { beforeAll, describe, expect } from "vitest";
import { apnsToken, type Project } from "./harness/project.ts";
import { test } from "./harness/shared-system.ts";
import { deviceOf, payloadOf } from "./harness/simulators.ts";
import { logOnFailure, type System } from "./harness/system.ts";

let system: System;
let project: Project;
let begun = 0;
test.beforeAll(async ({ system: shared }) => {
  system = shared;
  begun = system.logs.lines.length;
  project = await system.project();
});
logOnFailure(() => system);

const client = (route: string, body: unknown, token?: string) =>
  request(`${system.gateway}/api/v1`, route, { body, token });

/** The received pushes of a notification. */
const arrived = async (notificationId: string) =>
  (await system.simulators.pushes()).filter((push) => payloadOf(push).notification_id === notificationId);

describe("registration", () => {
  test("POST /devices creates a device, and recognizes it the next time", async () => {
    const token = apnsToken();
    const first = await project.register({ token, metadata: { plan: "free" }, topics: ["news"] });
    expect(first).toMatchObject({
      created: true,
      device: { token, platform: "ios", status: "active", metadata: { plan: "free" }, topics: ["news"] },
      credential: expect.stringMatching(/^hdc_/),
    });
    const again = await project.register({ token, metadata: { user: "7" }, topics: ["sport"] });
    expect(again).toMatchObject({
      created: false,
      device: { id: first.device.id, metadata: { plan: "free", user: "7" } },
    });
    expect(again.device.topics.sort()).toEqual(["news", "sport"]);
    const own = (credential: string) => project.call(`GET /devices/${first.device.id}`, { token: credential });
    expect((await own(again.credential)).status).toBe(200);
    expect((await own(first.credential)).status).toBe(401);
  });

  test("PUT /identification registers without a credential, and reveals nothing about a known device", async () => {
    const identification = {
      project_id: project.id,
      identifier: apnsToken(),
      platform: "ios",
      identifiers: { current_locale: "de-DE" },
      metadata: { plan: "pro" },
    };
    const first = await client("PUT /identification", identification);
    expect(first).toMatchObject({
      status: 201,
      body: { data: { status: "active" }, credential: expect.stringMatching(/^hdc_/) },
    });
    const again = await client("PUT /identification", identification);
    expect(again).toMatchObject({ status: 200, body: { data: first.body.data } });
    expect(Object.keys(again.body)).toEqual(["data"]);
    expect(Object.keys(again.body.data).sort()).toEqual(["id", "status"]);

    const renewed = apnsToken();
    const rotation = { ...identification, identifier: renewed, previous_identifier: identification.identifier };
    const moved = await client("PUT /identification", rotation, first.body.credential);
    expect(moved).toMatchObject({ status: 200, body: { data: { id: first.body.data.id } } });
    const device = await project.call(`GET /devices/${first.body.data.id}`);
    expect(device.body.data).toMatchObject({
      token: renewed,
      metadata: { plan: "pro" },
      identifiers: { current_locale: "de-DE" },
    });
  });

  test("GET /devices lists them, oldest first and by status", async () => {
    const own = await system.project();
    const made = [await own.register(), await own.register(), await own.register()].map(({ device }) => device.id);
    expectStatus(await own.call(`PATCH /devices/${made[1]}`, { body: { device: { status: "inactive" } } }), 200);
    const page = async (query: string) => (await own.call(`GET /devices?${query}`)).body;
    const active = await page("status=active&per_page=1&page=2");
    expect(active.pagination).toEqual({ count: 2, page: 2, pages: 2, from: 2, to: 2, last: 2 });
    expect(active.data.map(({ id }: { id: string }) => id)).toEqual([made[2]]);
    expect((await own.devices()).map(({ id }) => id)).toEqual(made);
  });
});

test("metadata is merged in three ways: device credential, project token, client identity", async () => {
  const { device, credential } = await project.register({ metadata: { plan: "free", cart: { items: 1, sum: 5 } } });
  const metadata = async () => (await project.call(`GET /devices/${device.id}`)).body.data.metadata;

  const byDevice = { body: { metadata: { cart: { items: 2 }, plan: null } }, token: credential };
  expectStatus(await project.call("PATCH /metadata", byDevice), 200);
  expect(await metadata()).toEqual({ cart: { items: 2, sum: 5 } });

  const byProject = { body: { metadata: { cart: null, plan: "pro" }, device_id: device.id } };
  expect((await project.call("PUT /metadata", byProject)).body.data.metadata).toEqual({ plan: "pro" });

  const byClient = { metadata: { last_seen: "today" }, project_id: project.id, identifier: device.token };
  const answer = expectStatus(await client("PATCH /metadata", byClient), 200);
  expect(answer.body.data).toEqual({ id: device.id, status: "active" });
  expect(await metadata()).toEqual({ plan: "pro", last_seen: "today" });
});

test("topics are created, subscribed to in bulk and by the device, counted and deleted", async () => {
  const own = await system.project();
  const [one, two] = [await own.register(), await own.register()];
  const made = expectStatus(await own.call("POST /topics", { body: { topic: { name: "offers" } } }), 201).body.data;
  const bulk = { body: { devices: [one.device.id, two.device.id] } };
  expect((await own.call(`PUT /topics/${made.id}/devices`, bulk)).body.data).toMatchObject({ changed: 2 });
  const mine = (method: string, topic: string) =>
    own.call(`${method} /devices/${one.device.id}/topics/${topic}`, { token: one.credential });
  expectStatus(await mine("DELETE", "offers"), 200, 204);
  expectStatus(await mine("PUT", "unheard-of"), 404);
  expect((await own.call("GET /topics")).body).toMatchObject({
    data: [{ id: made.id, name: "offers", devices: 1 }],
    pagination: { count: 1 },
  });
  expectStatus(await own.call("DELETE /topics/offers"), 204);
  expect((await own.call(`GET /devices/${two.device.id}`)).body.data.topics).toEqual([]);
});

describe("targets", () => {
  let own: Project;
  const ids: Record<string, string> = {};
  const tokens: Record<string, string> = {};
  beforeAll(async () => {
    own = await system.project();
    const devices = {
      ann: { topics: ["news", "sport"], metadata: { plan: "pro" } },
      bob: { topics: ["news"], identifiers: { current_locale: "de" } },
      cyd: { topics: ["sport"], metadata: { plan: "pro" } },
      dan: {},
      off: { topics: ["news"] },
    };
    for (const [name, device] of Object.entries(devices)) {
      const { device: made } = await own.register(device);
      ids[name] = made.id;
      tokens[name] = made.token;
    }
    const gone = { body: { device: { status: "inactive" } } };
    expectStatus(await own.call(`PATCH /devices/${ids.off}`, gone), 200);
  });

  test.for<[what: string, targets: () => string[], who: string[], unmatched?: string[]]>([
    ["a device", () => [`${ids.ann}`], ["ann"]],
    ["a device, prefixed", () => [`device:${ids.bob}`], ["bob"]],
    ["a token", () => [`token:${tokens.dan}`], ["dan"]],
    ["a bare topic", () => ["news"], ["ann", "bob"]],
    ["a prefixed topic", () => ["topic:sport"], ["ann", "cyd"]],
    ["all", () => ["all"], ["ann", "bob", "cyd", "dan"]],
    ["metadata", () => ["metadata:plan=pro"], ["ann", "cyd"]],
    ["identifiers", () => ["identifiers:current_locale=de"], ["bob"]],
    [
      "several at once, each device once",
      () => ["news", "topic:sport", `${ids.ann}`, `token:${tokens.ann}`, "metadata:plan=pro", "all"],
      ["ann", "bob", "cyd", "dan"],
    ],
    ["two names of one device", () => [`${ids.ann}`, `token:${tokens.ann}`], ["ann"]],
    ["an inactive device", () => [`${ids.off}`, `${ids.bob}`], ["bob"], ["off"]],
    ["no device", () => ["topic:empty"], [], ["topic:empty"]],
  ])("%s", async ([, targets, who, unmatched = []]) => {
    const { id } = await own.send({ title: "Hello", targets: targets() });
    const expected = who.map((name) => ids[name]).sort();
    const done = await own.final(id);
    expect(done).toMatchObject({
      status: "completed",
      counts: { devices: who.length, accepted: who.length, failed: 0, pending: 0 },
      unmatched: unmatched.map((name) => ids[name] ?? name),
    });
    expect((await arrived(id)).map(deviceOf).sort()).toEqual(expected);
    const deliveries = await own.deliveries(id);
    expect(deliveries.map(({ device_id }) => device_id).sort()).toEqual(expected);
    for (const delivery of deliveries)
      expect(delivery).toMatchObject({ status: "accepted", attempts: 1, possible_repeat: false });
  });
});

describe("payloads", () => {
  test("the payload as the device sees it, with every header", async () => {
    const { device } = await project.register({ identifiers: { current_locale: "de-AT" } });
    const sent = await project.send({
      title: "Order shipped",
      body: "It is on its way",
      targets: [device.id],
      link_to: "https://shop.example/orders/7",
      data: { order: "7" },
      image: "https://shop.example/7.png",
      badge: 3,
      sound: "ping.caf",
      category: "order",
      priority: "normal",
      ttl: 3_600,
      collapse_id: "order-7",
      localizations: { de: { title: "Bestellung versandt" } },
      urgency: "time-sensitive",
      relevance: 0.8,
      thread: "orders",
      ios: { aps: { "target-content-id": "order-7" } },
    });
    await project.final(sent.id);
    const [push, ...more] = await arrived(sent.id);
    expect(more).toEqual([]);
    const [delivery] = await project.deliveries(sent.id);
    expect(push).toMatchObject({ provider: "apns", token: device.token, status: 200 });
    expect(push?.payload).toEqual({
      aps: {
        alert: { title: "Bestellung versandt", body: "It is on its way" },
        badge: 3,
        sound: "ping.caf",
        category: "order",
        "mutable-content": 1,
        "thread-id": "orders",
        "interruption-level": "time-sensitive",
        "relevance-score": 0.8,
        "target-content-id": "order-7",
      },
      notification_id: sent.id,
      project_id: project.id,
      link_to: "https://shop.example/orders/7",
      image: "https://shop.example/7.png",
      data: { order: "7" },
      token: expect.stringMatching(new RegExp(`^v2\\.[^.]+\\.${device.id}\\.i\\.[0-9]{10}\\.[A-Za-z0-9_-]{43}$`)),
    });
    expect(push?.headers).toEqual({
      "apns-push-type": "alert",
      "apns-topic": "com.example.e2e",
      "apns-priority": "5",
      "apns-expiration": String(Math.floor(Date.parse(sent.created_at) / 1_000) + 3_600),
      "apns-id": expect.stringMatching(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/),
      "apns-collapse-id": "order-7",
      authorization: "bearer ***",
      ...(push?.headers["content-length"] && { "content-length": push.headers["content-length"] }),
    });
    expect(delivery?.provider_id).toBe(push?.headers["apns-id"]);
  });

  test("presentation that no device understands is refused, with the field", async () => {
    const notification = {
      title: "Hello",
      targets: ["all"],
      urgency: "urgent",
      relevance: 2,
      icon: "http://a.example/i.png",
    };
    const { status, body } = await project.call("POST /notifications", { body: { notification } });
    expect(status).toBe(422);
    expect(body.errors).toEqual([
      "notification.icon: must be an https URL",
      "notification.urgency: must be one of `passive`, `active`, `time-sensitive`, `critical`",
      "notification.relevance: must be from 0 to 1",
    ]);
  });

  test("with a site, what fits every browser but Safari is refused", async () => {
    const own = await system.project("Site", ["webpush"]);
    const notification = { title: "Hello", body: "x".repeat(3_450), targets: ["all"], dry_run: true };
    const dryRun = () => own.call("POST /notifications", { body: { notification } });
    expectStatus(await dryRun(), 200);
    const settings = { subject: "mailto:ops@example.com", site: "https://shop.example.com" };
    const { body } = expectStatus(
      await system.admin(`PUT /projects/${own.id}/providers/webpush`, { body: settings }),
      200,
    );
    expect(body.data.settings).toMatchObject(settings);
    await eventually(async () => {
      const { status, body } = await dryRun();
      expect([status, body.errors]).toEqual([
        422,
        [expect.stringMatching(/^notification: renders to \d{4} bytes for web on Safari, at most 3993 fit/)],
      ]);
    });
  });

  test("a silent notification wakes the app in the background", async () => {
    const { device } = await project.register();
    const { id } = await project.send({ silent: true, targets: [device.id], data: { sync: "now" }, ttl: 0 });
    await project.final(id);
    const [push] = await arrived(id);
    expect(push?.payload).toMatchObject({ aps: { "content-available": 1 }, data: { sync: "now" } });
    expect(push?.headers).toMatchObject({
      "apns-push-type": "background",
      "apns-priority": "5",
      "apns-collapse-id": id,
    });
  });
});

test("none of this logged an error", () => {
  const complaints = system.logs.lines.slice(begun).filter(({ level }) => level === "error" || level === "fatal");
  expect(complaints.map(({ line }) => line)).toEqual([]);
});
