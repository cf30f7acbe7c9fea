import { createHttp2Transport } from "@herald/http2-client";
import { renderWebPush } from "@herald/payload";
import type { Simulators } from "@herald/simulators";
import { describe, expect, it } from "vitest";
import { at, createLocalTransport, createWebPushFixture, keys, pushTo } from "../../../test/webpush-fixture.ts";
import { makeCurrent, newRing, newVapidKeys, type RawKeyPair, retire, stage, toRingKey } from "./settings.ts";

const { connect, simulate } = createWebPushFixture();

describe("a push", () => {
  it("is encrypted so that the browser can read it, and carries its headers", async () => {
    const simulators = await simulate();
    const sent = pushTo(simulators);
    expect(await connect(at(simulators)).send(sent)).toMatchObject({ kind: "accepted" });
    const [seen] = simulators.pushes({ provider: "webpush" });
    expect(seen).toMatchObject({
      token: sent.token,
      payload: { notification: { title: "Żółw 🐢" } },
      headers: {
        urgency: "high",
        topic: "order-42",
        "content-encoding": "aes128gcm",
        ttl: expect.stringMatching(/^3(5\d\d|600)$/),
      },
    });
  });

  it("has a topic that Apple can decode, whatever its collapse id", async () => {
    const simulators = await simulate();
    const client = connect(at(simulators));
    for (const collapseId of ["order-1234567", "x", "score", "order 42", "order-42"]) {
      const content = { title: "Hello", targets: ["all"], collapse_id: collapseId };
      expect(await client.send({ ...pushTo(simulators), content })).toMatchObject({ kind: "accepted" });
    }
  });

  it("has a TTL of 0 when it has expired", async () => {
    const simulators = await simulate();
    await connect(at(simulators)).send(pushTo(simulators, "", { expiresAt: new Date(0) }));
    expect(simulators.pushes()[0]?.headers.ttl).toBe("0");
  });

  it("may fill the record, and not a byte more", async () => {
    const simulators = await simulate();
    const client = connect(at(simulators));
    const origin = pushTo(simulators);
    const contentOf = (length: number) => ({ title: "Hello", body: "x".repeat(length), targets: ["all"] });
    const rest = renderWebPush(contentOf(1), origin).body("open").length - 1;
    const pushOf = (size: number) => ({ ...origin, content: contentOf(size - rest) });
    expect(await client.send(pushOf(3_993))).toMatchObject({ kind: "accepted" });
    expect(await client.send(pushOf(3_994))).toMatchObject({
      kind: "rejected",
      reason: "payload-too-large",
    });
    expect(simulators.pushes()).toHaveLength(1);
  });

  it.each([
    ["none", undefined, "keys: the subscription has none"],
    [
      "a point that is not on the curve",
      { p256dh: Buffer.alloc(65, 4).toString("base64url"), auth: "A".repeat(22) },
      "keys.p256dh: not an uncompressed point of P-256",
    ],
    [
      "a secret that is too short",
      { p256dh: newVapidKeys().public_key, auth: "AAAA" },
      "keys.auth: 3 bytes, must be 16",
    ],
    ["nonsense", { p256dh: "x", auth: "y" }, "keys.auth: 0 bytes, must be 16"],
  ])(
    "with keys that are %s is refused without a request, and the others are sent",
    async (_, wrong, providerReason) => {
      const simulators = await simulate();
      const [bad, good] = [pushTo(simulators, "", { keys: wrong }), pushTo(simulators)];
      const client = connect(at(simulators));
      const send = client.prepare(good);
      expect(await Promise.all([bad, good, bad].map((push) => send(push, "open")))).toEqual([
        { kind: "rejected", reason: "token-invalid", providerReason, notSent: true, badToken: true },
        expect.objectContaining({ kind: "accepted" }),
        { kind: "rejected", reason: "token-invalid", providerReason, notSent: true, badToken: true },
      ]);
      expect(simulators.pushes()).toMatchObject([{ token: good.token }]);
    },
  );

  it("shares the sender's key with its batch, and with no other", async () => {
    const simulators = await simulate();
    const seen: string[] = [];
    const client = connect(at(simulators), {
      createTransport(options) {
        const transport = createHttp2Transport(options);
        return {
          ...transport,
          send(request) {
            seen.push(Buffer.from(request.body).toString("hex", 21, 86));
            return transport.send(request);
          },
        };
      },
    });
    for (let batch = 0; batch < 2; batch++) {
      const pushes = [pushTo(simulators), pushTo(simulators), pushTo(simulators)];
      const send = client.prepare(pushTo(simulators));
      for (const outcome of await Promise.all(pushes.map((push) => send(push, "open"))))
        expect(outcome).toMatchObject({ kind: "accepted" });
    }
    expect(seen).toEqual([seen[0], seen[0], seen[0], seen[3], seen[3], seen[3]]);
    expect(seen[3]).not.toBe(seen[0]);
  });
});

describe("a push to Safari", () => {
  const site = "https://shop.example.com";
  const safari = async (host = "web.push.apple.com") => {
    const simulators = await simulate({ publicHost: host });
    const toSite = connect({ ...at(simulators), site }, { createTransport: createLocalTransport });
    const withoutSite = connect(at(simulators), { createTransport: createLocalTransport });
    return { simulators, toSite, withoutSite };
  };
  const typesOf = (simulators: Simulators) => simulators.pushes().map(({ headers }) => headers["content-type"]);

  it("is declarative, and a click opens a page of the site that knows what was opened", async () => {
    const { simulators, toSite } = await safari();
    const push = pushTo(simulators);
    const sent = { ...push, content: { ...push.content, link_to: "/orders/42", badge: 3 } };
    expect(await toSite.send(sent)).toMatchObject({ kind: "accepted" });
    const [seen] = simulators.pushes();
    expect(seen).toMatchObject({
      headers: { "content-type": "application/notification+json", "content-encoding": "aes128gcm", urgency: "high" },
      payload: {
        ...{ web_push: 8030, app_badge: 3, link_to: "/orders/42", token: "open" },
        ...{ notification_id: sent.notificationId, project_id: sent.projectId },
        notification: {
          ...{ title: "Żółw 🐢", tag: "order-42", app_badge: 3 },
          navigate: `${site}/orders/42#herald=${sent.notificationId}.open`,
          data: { notification_id: sent.notificationId, project_id: sent.projectId },
        },
      },
    });
  });

  it("is as for other browsers without a title, without a site, or with a link to another site", async () => {
    const { simulators, toSite, withoutSite } = await safari();
    const push = pushTo(simulators);
    const { title: _, ...untitled } = { ...push.content, body: "World" };
    expect(await toSite.send({ ...push, content: untitled })).toMatchObject({ kind: "accepted" });
    expect(await withoutSite.send(push)).toMatchObject({ kind: "accepted" });
    const elsewhere = { ...push.content, link_to: "https://other.example/" };
    expect(await toSite.send({ ...push, content: elsewhere })).toMatchObject({ kind: "accepted" });
    expect(typesOf(simulators)).toEqual(Array(3).fill("application/octet-stream"));
    for (const { payload } of simulators.pushes()) expect(payload).not.toHaveProperty("web_push");
  });

  it("is recognized by the host of its endpoint alone", async () => {
    for (const host of ["push.apple.com.example.com", "localhost"]) {
      const { simulators, toSite } = await safari(host);
      expect(await toSite.send(pushTo(simulators))).toMatchObject({ kind: "accepted" });
      expect(typesOf(simulators)).toEqual(["application/octet-stream"]);
    }
  });
});

describe("answers", () => {
  it("become outcomes", async () => {
    const simulators = await simulate();
    const rule = (tokenPrefix: string, status: number, headers?: Record<string, string>) => ({
      provider: "webpush",
      tokenPrefix,
      status,
      ...(headers ? { headers } : {}),
    });
    simulators.script([
      rule("gone", 410),
      rule("lost", 404),
      rule("big", 413),
      rule("wrong", 403),
      rule("busy", 429, { "retry-after": "30" }),
      rule("unavailable", 307, { location: "/elsewhere" }),
      rule("portal", 307, { location: "https://169.254.169.254/" }),
      { provider: "webpush", tokenPrefix: "silent", rst: "INTERNAL_ERROR" },
    ]);
    const client = connect(at(simulators));
    const outcome = (prefix: string) => client.send(pushTo(simulators, prefix));
    expect(await outcome("gone")).toMatchObject({ kind: "unregistered" });
    expect(await outcome("lost")).toMatchObject({ kind: "unregistered" });
    expect(await outcome("big")).toMatchObject({ kind: "rejected", reason: "payload-too-large" });
    expect(await outcome("wrong")).toMatchObject({ kind: "rejected", tokenMismatch: true });
    expect(await outcome("busy")).toMatchObject({ kind: "deferred", retryAfterMs: 30_000 });
    expect(await outcome("unavailable")).toMatchObject({ kind: "rejected", reason: "endpoint-forbidden" });
    expect(await outcome("portal")).toMatchObject({ kind: "deferred", problem: { reason: "not-the-provider" } });
    expect(await outcome("silent")).toMatchObject({ kind: "unknown" });
  });

  it("say so when the subscription has ended or belongs to another key", async () => {
    const simulators = await simulate();
    const client = connect(at(simulators));
    const ended = pushTo(simulators);
    simulators.webpush.unsubscribe(ended.token.split("/").at(-1) ?? "");
    expect(await client.send(ended)).toMatchObject({ kind: "unregistered" });
    const { endpoint, keys: theirs } = simulators.webpush.subscribe({
      applicationServerKey: newVapidKeys().public_key,
    });
    expect(await client.send(pushTo(simulators, "", { token: endpoint, keys: theirs }))).toMatchObject({
      kind: "rejected",
      reason: "topic-mismatch",
    });
  });
});

describe("several keys", () => {
  const [then, later] = [new Date("2026-01-01T00:00:00Z"), new Date("2026-02-01T00:00:00Z")];
  const [old, next] = [toRingKey(newVapidKeys(), then), toRingKey(newVapidKeys(), then)];
  const ring = stage(makeCurrent(newRing(old, then), toRingKey(keys, later), later), next);
  const bound = (simulators: Simulators, key: RawKeyPair, vapidKeyId?: string) => {
    const { endpoint, keys: theirs } = simulators.webpush.subscribe({ applicationServerKey: key.public_key });
    return pushTo(simulators, "", { token: endpoint, keys: theirs, vapidKeyId });
  };

  it("sign each for the subscriptions that were made with them", async () => {
    const simulators = await simulate();
    const client = connect({ ...at(simulators), ring });
    for (const key of [old, ring.current, next])
      expect(await client.send(bound(simulators, key, key.id))).toMatchObject({ kind: "accepted" });
    expect(simulators.pushes().map(({ vapidKey }) => vapidKey)).toEqual([
      old.public_key,
      keys.public_key,
      next.public_key,
    ]);
    expect(await client.send(bound(simulators, old, ring.current.id))).toMatchObject({
      kind: "rejected",
      tokenMismatch: true,
    });
  });

  it("the first one signs for subscriptions that name none, or one of deleted settings", async () => {
    const simulators = await simulate();
    const client = connect({ ...at(simulators), ring });
    expect(await client.send(bound(simulators, old))).toMatchObject({ kind: "accepted" });
    expect(await client.send(bound(simulators, old, "0123456789abcdef"))).toMatchObject({ kind: "accepted" });
  });

  it("a retired one signs nothing, and no request is made", async () => {
    const simulators = await simulate();
    const client = connect({ ...at(simulators), ring: retire(ring, old.id) });
    for (const id of [old.id, undefined])
      expect(await client.send(bound(simulators, old, id))).toMatchObject({
        kind: "rejected",
        reason: "vapid-key-retired",
        notSent: true,
      });
    expect(simulators.pushes()).toEqual([]);
  });
});

it("signs once for many pushes, and again before a push service would refuse it", async () => {
  let ahead = 0;
  const simulators = await simulate({ webpush: { now: () => Date.now() + ahead } });
  const seen = new Set<string | undefined>();
  const client = connect(at(simulators), {
    now: () => new Date(Date.now() + ahead),
    createTransport(options) {
      const transport = createHttp2Transport(options);
      return {
        ...transport,
        send(request) {
          seen.add(request.headers.authorization);
          return transport.send(request);
        },
      };
    },
  });
  for (let hour = 0; hour < 48; hour++) {
    expect(await client.send(pushTo(simulators))).toMatchObject({ kind: "accepted" });
    ahead += 3_600_000;
  }
  expect(seen.size).toBe(5);
});
