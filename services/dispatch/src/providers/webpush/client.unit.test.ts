import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import {
  createHttp1Transport,
  createHttp2Transport,
  createNegotiatedTransport,
  type TransportOptions,
} from "@herald/http2-client";
import { type Simulators, type SimulatorsOptions, startSimulators } from "@herald/simulators";
import { afterEach, describe, expect, it, test } from "vitest";
import { createWebPushClient, type WebPushClientDeps, type WebPushMessage, type WebPushRecipient } from "./client.ts";
import { type KeyRing, makeCurrent, newRing, retire, stage, toRingKey } from "./key-ring.ts";
import { newVapidKeys, type VapidKeys } from "./vapid-keys.ts";

const keys = newVapidKeys();
const subject = "mailto:ops@example.com";

/** One notification for one subscription. */
type Push = WebPushMessage & WebPushRecipient & { readonly body: string };

const cleanups: Array<() => Promise<unknown>> = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function simulate(options: SimulatorsOptions = {}): Promise<Simulators> {
  const simulators = await startSimulators(options);
  cleanups.push(simulators.stop);
  return simulators;
}

function connect(elsewhere: { endpoint?: string; ca?: string; ring?: KeyRing }, over: Partial<WebPushClientDeps> = {}) {
  const client = createWebPushClient({
    settings: { subject, ...keys, ...elsewhere },
    createTransport: createHttp2Transport,
    now: () => new Date(),
    ...over,
  });
  cleanups.push(client.close);
  return { ...client, send: ({ body, ...push }: Push) => client.prepare(push)(push, body) };
}

const at = ({ webpush, ca }: Simulators) => ({ endpoint: webpush.url, ca });

function pushTo(simulators: Simulators, prefix = "", over: Partial<Push> = {}): Push {
  const subscription = simulators.webpush.subscribe({ applicationServerKey: keys.public_key, prefix });
  return {
    endpoint: subscription.endpoint,
    keys: subscription.keys,
    body: JSON.stringify({ notification: { title: "Żółw 🐢" } }),
    urgency: "high",
    expiresAt: new Date(Date.now() + 3_600_000),
    collapseId: "ntf_01h455vb4pex5vsknk084sn02q",
    ...over,
  };
}

describe("a push", () => {
  it("is encrypted so that the browser can read it, and carries its headers", async () => {
    const simulators = await simulate();
    const sent = pushTo(simulators);
    expect(await connect(at(simulators)).send(sent)).toMatchObject({ kind: "accepted" });
    const [seen] = simulators.pushes({ provider: "webpush" });
    expect(seen).toMatchObject({
      token: sent.endpoint,
      payload: { notification: { title: "Żółw 🐢" } },
      headers: {
        urgency: "high",
        topic: "ntf_01h455vb4pex5vsknk084sn02q",
        "content-encoding": "aes128gcm",
        ttl: expect.stringMatching(/^3(599|600)$/),
      },
    });
  });

  it("is for now or never when its time is over", async () => {
    const simulators = await simulate();
    await connect(at(simulators)).send(pushTo(simulators, "", { expiresAt: new Date(0) }));
    expect(simulators.pushes()[0]?.headers.ttl).toBe("0");
  });

  it("may fill the record, and not a byte more", async () => {
    const simulators = await simulate();
    const client = connect(at(simulators));
    const full = JSON.stringify({ text: "" });
    const body = (size: number) => JSON.stringify({ text: "x".repeat(size - full.length) });
    expect(await client.send(pushTo(simulators, "", { body: body(3_993) }))).toMatchObject({ kind: "accepted" });
    expect(await client.send(pushTo(simulators, "", { body: body(3_994) }))).toMatchObject({
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
      expect(await Promise.all([bad, good, bad].map((push) => send(push, push.body)))).toEqual([
        { kind: "rejected", reason: "token-invalid", providerReason, notSent: true },
        expect.objectContaining({ kind: "accepted" }),
        { kind: "rejected", reason: "token-invalid", providerReason, notSent: true },
      ]);
      expect(simulators.pushes()).toMatchObject([{ token: good.endpoint }]);
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
      for (const outcome of await Promise.all(pushes.map((push) => send(push, push.body))))
        expect(outcome).toMatchObject({ kind: "accepted" });
    }
    expect(seen).toEqual([seen[0], seen[0], seen[0], seen[3], seen[3], seen[3]]);
    expect(seen[3]).not.toBe(seen[0]);
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
      rule("unavailable", 307, { location: "https://169.254.169.254/" }),
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
    expect(await outcome("silent")).toMatchObject({ kind: "unknown" });
  });

  it("say so when the subscription has ended or belongs to another key", async () => {
    const simulators = await simulate();
    const client = connect(at(simulators));
    const ended = pushTo(simulators);
    simulators.webpush.unsubscribe(ended.endpoint.split("/").at(-1) ?? "");
    expect(await client.send(ended)).toMatchObject({ kind: "unregistered" });
    const { endpoint, keys: theirs } = simulators.webpush.subscribe({
      applicationServerKey: newVapidKeys().public_key,
    });
    expect(await client.send(pushTo(simulators, "", { endpoint, keys: theirs }))).toMatchObject({
      kind: "rejected",
      reason: "topic-mismatch",
    });
  });
});

describe("several keys", () => {
  const [then, later] = [new Date("2026-01-01T00:00:00Z"), new Date("2026-02-01T00:00:00Z")];
  const [old, next] = [toRingKey(newVapidKeys(), then), toRingKey(newVapidKeys(), then)];
  const ring = stage(makeCurrent(newRing(old, then), toRingKey(keys, later), later), next);
  const bound = (simulators: Simulators, key: VapidKeys, vapidKeyId?: string) => {
    const { endpoint, keys: theirs } = simulators.webpush.subscribe({ applicationServerKey: key.public_key });
    return pushTo(simulators, "", { endpoint, keys: theirs, vapidKeyId });
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

  it("the first one signs for those that name none, or one of settings that are gone", async () => {
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

describe("the guard", () => {
  /** A server inside, which must never see a connection. */
  async function inside() {
    let connections = 0;
    const server = createServer((socket) => {
      connections++;
      socket.destroy();
    });
    await once(server.listen(0, "127.0.0.1"), "listening");
    cleanups.push(() => once(server.close(), "close"));
    return { port: (server.address() as AddressInfo).port, count: () => connections };
  }

  it("refuses what leads inside before any request", async () => {
    const simulators = await simulate();
    const opened: string[] = [];
    const client = connect(at(simulators), {
      hosts: "any",
      createTransport(options) {
        opened.push(options.origin);
        return createHttp2Transport(options);
      },
    });
    for (const endpoint of [
      "https://169.254.169.254/",
      "https://127.0.0.1/",
      "https://localhost/",
      "http://a.example/",
      "x",
    ])
      expect(await client.send(pushTo(simulators, "", { endpoint }))).toMatchObject({
        kind: "rejected",
        reason: "endpoint-forbidden",
      });
    expect(opened).toEqual([]);
  });

  it.each([
    ["HTTP/2", createHttp2Transport],
    ["HTTP/1.1", createHttp1Transport],
    ["whatever it speaks", createNegotiatedTransport],
  ])("refuses a name that leads inside at connect, also one that changes its mind, by %s", async (_, create) => {
    const simulators = await simulate();
    const { port, count } = await inside();
    let asked = 0;
    const client = connect(
      {},
      {
        hosts: "any",
        // As after a check that saw a public address: the name now leads inside, in part or in whole.
        resolve(_hostname, _options, callback) {
          asked++;
          const addresses = [{ address: "127.0.0.1", family: 4 }];
          callback(null, asked % 2 === 0 ? addresses : [{ address: "93.184.216.34", family: 4 }, ...addresses]);
        },
        createTransport: (options: TransportOptions) =>
          create({ ...options, origin: `https://rebinding.example:${port}` }),
      },
    );
    for (let round = 0; round < 5; round++) {
      const outcome = await client.send(pushTo(simulators, "", { endpoint: "https://rebinding.example/push" }));
      expect(outcome).toMatchObject({ kind: "rejected", reason: "endpoint-forbidden" });
    }
    expect(asked).toBeGreaterThan(0);
    expect(count()).toBe(0);
  });

  it("keeps to the browsers' push services unless the operator lets go of that", async () => {
    const simulators = await simulate();
    const client = connect({});
    expect(await client.send(pushTo(simulators, "", { endpoint: "https://push.example.com/x" }))).toEqual({
      kind: "rejected",
      reason: "endpoint-forbidden",
      notSent: true,
      providerReason: "the endpoint's host is not a known push service",
    });
  });
});

test("keeps connections to a bounded number of push services", async () => {
  const simulators = await simulate();
  let open = 0;
  const client = connect(
    {},
    {
      hosts: "any",
      createTransport() {
        open++;
        return {
          send: async () => ({ kind: "answered", status: 201, headers: {}, body: "" }),
          close: async () => void open--,
        };
      },
    },
  );
  const sent = pushTo(simulators);
  for (let index = 0; index < 100; index++) await client.send({ ...sent, endpoint: `https://host-${index}.example/` });
  expect(open).toBeLessThanOrEqual(32);
  await client.close();
  expect(open).toBe(0);
});
