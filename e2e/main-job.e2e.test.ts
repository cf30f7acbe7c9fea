import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { NotificationOpenedV1 } from "@herald/contracts";
import { eventually, readStream } from "@herald/testing";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { expectStatus, request } from "./harness/http.ts";
import { apnsToken, type Project } from "./harness/project.ts";
import { natsRefusal } from "./harness/raw-nats.ts";
import { deviceOf, payloadOf } from "./harness/simulators.ts";
import { type System, startSystem, tellOnFailure } from "./harness/system.ts";

let system: System;
let project: Project;
beforeAll(async () => {
  system = await startSystem();
  project = await system.project();
});
afterAll(() => system?.stop());
tellOnFailure(() => system);

const client = (route: string, body: unknown) => request(`${system.gateway}/api/v1`, route, { body });

/** What arrived of a notification. */
const arrived = async (notificationId: string) =>
  (await system.simulators.pushes()).filter((push) => payloadOf(push).notification_id === notificationId);

describe("registration", () => {
  test("POST /devices makes a device, and knows it again", async () => {
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

  test("PUT /identification registers without a credential, and tells nothing about a known device", async () => {
    const identification = {
      project_id: project.id,
      identifier: apnsToken(),
      platform: "ios",
      identifiers: { locale: "de-DE" },
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
    const moved = await client("PUT /identification", {
      ...identification,
      identifier: renewed,
      previous_identifier: identification.identifier,
    });
    expect(moved).toMatchObject({ status: 200, body: { data: { id: first.body.data.id } } });
    const device = await project.call(`GET /devices/${first.body.data.id}`);
    expect(device.body.data).toMatchObject({
      token: renewed,
      metadata: { plan: "pro" },
      identifiers: { locale: "de-DE" },
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

test("topics are made, subscribed to in bulk and by the device, counted and deleted", async () => {
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
      bob: { topics: ["news"], identifiers: { locale: "de" } },
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
    ["identifiers", () => ["identifiers:locale=de"], ["bob"]],
    [
      "several at once, each device once",
      () => ["news", "topic:sport", `${ids.ann}`, `token:${tokens.ann}`, "metadata:plan=pro", "all"],
      ["ann", "bob", "cyd", "dan"],
    ],
    ["two names of one device", () => [`${ids.ann}`, `token:${tokens.ann}`], ["ann"]],
    ["an inactive device", () => [`${ids.off}`, `${ids.bob}`], ["bob"], ["off"]],
    ["nobody", () => ["topic:nobody"], [], ["topic:nobody"]],
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

describe("what arrives", () => {
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
      ios: { aps: { "thread-id": "orders" } },
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
      },
      notification_id: sent.id,
      project_id: project.id,
      link_to: "https://shop.example/orders/7",
      image: "https://shop.example/7.png",
      data: { order: "7" },
      token: expect.stringMatching(new RegExp(`^v1\\.[^.]+\\.${device.id}\\.[0-9]{10}\\.[A-Za-z0-9_-]{43}$`)),
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

  test("a silent one wakes the app in the background", async () => {
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

describe("opens", () => {
  let consumer: ChildProcess;
  let printed = "";
  beforeAll(async () => {
    const { user, password, stream, durable, inboxPrefix } = system.analytics;
    consumer = spawn(process.execPath, [join(import.meta.dirname, "../examples/consume-opens.ts")], {
      env: {
        NATS_URL: system.broker.url,
        NATS_USER: user,
        NATS_PASSWORD: password,
        NATS_STREAM: stream,
        NATS_DURABLE: durable,
        NATS_INBOX_PREFIX: inboxPrefix,
      },
      stdio: ["ignore", "pipe", "pipe"],
    });
    consumer.stderr?.on("data", (text) => system.logs.add("example", String(text)));
    consumer.stdout?.setEncoding("utf8").on("data", (text) => {
      printed += text;
    });
  });
  afterAll(() => consumer.kill("SIGKILL"));
  const opens = () =>
    printed
      .split("\n")
      .filter(Boolean)
      .map((line) => JSON.parse(line) as Record<string, string>);

  test("an open is taken, counted once, and told to a consumer with the analytics credential alone", async () => {
    const { device: first } = await project.register();
    const { device: second } = await project.register();
    const { id } = await project.send({ title: "Open me", targets: [first.id, second.id] });
    await project.final(id);
    const push = (await arrived(id)).find((one) => deviceOf(one) === first.id);
    if (!push) throw new Error("it did not arrive");
    const body = { project_id: project.id, token: payloadOf(push).token };
    const open = () => client(`PUT /notifications/${id}/open`, body);
    expect((await open()).status).toBe(204);
    expect((await open()).status).toBe(204);

    await eventually(async () => {
      expect((await project.notification(id)).counts).toMatchObject({ devices: 2, accepted: 2, opened: 1 });
    });
    const rows = await project.deliveries(id);
    const opened = rows.map(({ device_id, opened_at }) => [device_id, opened_at !== undefined]);
    expect(Object.fromEntries(opened)).toEqual({ [first.id]: true, [second.id]: false });

    const events = await eventually(async () => {
      const found = await readStream(system.broker, "PUSH_EVENTS", NotificationOpenedV1.filter);
      const mine = found.filter((event) => event.body.includes(id));
      expect(mine).toHaveLength(1);
      return mine;
    });
    const [event] = events;
    expect(event?.headers).toMatchObject({
      "ce-specversion": "1.0",
      "ce-type": "herald.notification.opened.v1",
      "ce-source": `/projects/${project.id}`,
      traceparent: expect.stringMatching(/^00-[0-9a-f]{32}-[0-9a-f]{16}-0[01]$/),
    });
    const told = await eventually(() => {
      const mine = opens().filter((one) => one.notificationId === id);
      expect(mine).toHaveLength(1);
      return mine[0];
    });
    expect(told).toMatchObject({
      id: event?.headers["ce-id"],
      type: "herald.notification.opened.v1",
      projectId: project.id,
      deviceId: first.id,
      openedAt: rows.find(({ device_id }) => device_id === first.id)?.opened_at,
    });
  });

  test.for<[what: string, forge: (token: string) => { token?: string; project_id?: string; id?: string }]>([
    ["a forged signature", (token) => ({ token: `${token.slice(0, -4)}AAAA` })],
    ["another device", (token) => ({ token: token.replace(/dev_.{26}/, "dev_01m7yrszajfsprzbd1z1br2ywr") })],
    ["another notification", () => ({ id: "ntf_01m7yrszajfsprzbd1z1br2ywr" })],
    ["another project", () => ({ project_id: "prj_01m7yrszajfsprzbd1z1br2ywr" })],
    ["no token at all", () => ({ token: "hello" })],
  ])("an open with %s is refused", async ([, forge]) => {
    const { device } = await project.register();
    const { id } = await project.send({ title: "Open me", targets: [device.id] });
    await project.final(id);
    const [push] = await arrived(id);
    if (!push) throw new Error("it did not arrive");
    const { id: where = id, ...change } = forge(payloadOf(push).token);
    const body = { project_id: project.id, token: payloadOf(push).token, ...change };
    expect((await client(`PUT /notifications/${where}/open`, body)).status).toBe(403);
    expect((await client(`PUT /notifications/${id}/open`, { ...body, token: payloadOf(push).token })).status).toBe(
      change.project_id ? 403 : 204,
    );
  });

  test("the consumer of the example ends in order", async () => {
    consumer.kill("SIGTERM");
    expect(await once(consumer, "exit")).toEqual([0, null]);
  });
});

describe("the analytics credential", () => {
  const refusal = (line: string) => natsRefusal({ ...system.analytics, url: system.broker.url }, line);
  const subscribe = (subject: string) => refusal(`SUB ${subject} 1`);
  const publish = (subject: string) => refusal(`PUB ${subject} _INBOX_analytics.1 0\r\n`);

  test("reads its durable", async () => {
    const { stream, durable, inboxPrefix } = system.analytics;
    expect(await subscribe(`${inboxPrefix}.1`)).toBeUndefined();
    expect(await publish(`$JS.API.CONSUMER.INFO.${stream}.${durable}`)).toBeUndefined();
    expect(await publish(`$JS.API.CONSUMER.MSG.NEXT.${stream}.${durable}`)).toBeUndefined();
  });

  test.for([">", "push.>", "push.evt.>", "push.req.>", "$JS.>", "$KV.>", "$SYS.>", "_INBOX.>"])(
    "may not subscribe to %s",
    async (subject) => {
      expect(await subscribe(subject)).toMatch(/^permissions violation/i);
    },
  );

  test.for([
    "push.cmd.v1.dispatch.send.prj_1.ntf_1",
    "push.evt.v1.prj_1.notification.opened",
    "push.deliver.v1.direct.ios.prj_1",
    "push.req.v1.registry.projects.list",
    "push.dlq.v1.dispatch-start",
    "$KV.push_tokens.1",
    "$JS.API.INFO",
    "$JS.API.STREAM.INFO.PUSH_EVENTS",
    "$JS.API.STREAM.NAMES",
    "$JS.API.STREAM.CREATE.MINE",
    "$JS.API.STREAM.UPDATE.PUSH_EVENTS",
    "$JS.API.STREAM.PURGE.PUSH_EVENTS",
    "$JS.API.STREAM.DELETE.PUSH_EVENTS",
    "$JS.API.STREAM.MSG.GET.PUSH_EVENTS",
    "$JS.API.STREAM.MSG.DELETE.PUSH_EVENTS",
    "$JS.API.DIRECT.GET.PUSH_EVENTS",
    "$JS.API.DIRECT.GET.KV_push_tokens.$KV.push_tokens.1",
    "$JS.API.CONSUMER.CREATE.PUSH_EVENTS.mine",
    "$JS.API.CONSUMER.CREATE.PUSH_EVENTS.consumers-opens",
    "$JS.API.CONSUMER.DURABLE.CREATE.PUSH_EVENTS.consumers-opens",
    "$JS.API.CONSUMER.DELETE.PUSH_EVENTS.consumers-opens",
    "$JS.API.CONSUMER.PAUSE.PUSH_EVENTS.consumers-opens",
    "$JS.API.CONSUMER.INFO.PUSH_EVENTS.registry-retire-device",
    "$JS.API.CONSUMER.MSG.NEXT.PUSH_EVENTS.registry-retire-device",
    "$JS.API.CONSUMER.MSG.NEXT.PUSH_CMD.dispatch-start",
    "$JS.ACK.PUSH_CMD.dispatch-start.1.1.1.1.1",
    "$JS.ACK.PUSH_EVENTS.registry-retire-device.1.1.1.1.1",
    "$SYS.REQ.SERVER.PING",
  ])("may not publish to %s", async (subject) => {
    expect(await publish(subject)).toMatch(/^permissions violation/i);
  });

  test("has a password", async () => {
    const guess = { url: system.broker.url, user: system.analytics.user, password: "guess" };
    expect(await natsRefusal(guess, "SUB _INBOX_analytics.1 1")).toMatch(/^authorization violation/i);
  });
});
