import { createPrivateKey } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { connect } from "node:http2";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect as tlsConnect } from "node:tls";
import { importPKCS8, SignJWT } from "jose";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { callH1, callH2, type HttpParts } from "../../test/https-client.ts";
import { encrypt as encryptFor, newVapidKeys } from "../../test/webpush-sender.ts";
import { knownAnswers } from "../script/known-answers.ts";
import { startSimulators } from "../start-simulators.ts";
import type { Simulators, WebPushSubscription } from "../types.ts";

let simulators: Simulators;
let subscription: WebPushSubscription;
const vapid = newVapidKeys();
const otherVapid = newVapidKeys();

beforeAll(async () => {
  simulators = await startSimulators();
});
afterAll(() => simulators.stop());
beforeEach(() => {
  simulators.clear();
  subscription = simulators.webpush.subscribe();
});

const inSeconds = (seconds: number) => Math.floor(Date.now() / 1000) + seconds;
const privateKeyOf = ({ publicKey, privateKey }: typeof vapid) => {
  const point = Buffer.from(publicKey, "base64url");
  const jwk = {
    kty: "EC",
    crv: "P-256",
    d: privateKey,
    x: point.subarray(1, 33).toString("base64url"),
    y: point.subarray(33).toString("base64url"),
  };
  return createPrivateKey({ key: jwk, format: "jwk" }).export({ type: "pkcs8", format: "pem" }).toString();
};
const authorization = async (claims: object = {}, { keys = vapid, k }: { keys?: typeof vapid; k?: string } = {}) => {
  const jwt = await new SignJWT({
    aud: simulators.webpush.url,
    exp: inSeconds(3600),
    sub: "mailto:ops@example.org",
    ...claims,
  })
    .setProtectedHeader({ alg: "ES256", typ: "JWT" })
    .sign(await importPKCS8(privateKeyOf(keys), "ES256"));
  return `vapid t=${jwt}, k=${k ?? keys.publicKey}`;
};
const encrypt = (text: string, { keys }: WebPushSubscription = subscription) => encryptFor(text, keys);

const parts = async ({ headers, ...rest }: Partial<HttpParts> = {}): Promise<HttpParts> => ({
  path: new URL(subscription.endpoint).pathname,
  body: encrypt('{"title":"Hello","link_to":"/news/1"}'),
  ...rest,
  headers: {
    ttl: "60",
    urgency: "high",
    topic: "news",
    "content-encoding": "aes128gcm",
    authorization: await authorization(),
    ...headers,
  },
});
const push = async (given: Partial<HttpParts> = {}) =>
  callH2(simulators.webpush.url, simulators.ca, await parts(given));

it("does not take a push that was cut off before its body for one without a body", async () => {
  const { path, headers } = await parts();
  const { hostname, port } = new URL(simulators.webpush.url);
  const socket = tlsConnect({ host: hostname, port: Number(port), ca: simulators.ca, ALPNProtocols: ["h2"] });
  const session = connect(simulators.webpush.url, { createConnection: () => socket });
  session.on("error", () => {});
  const stream = session.request({ ":method": "POST", ":path": path, ...headers }, { endStream: false });
  stream.on("error", () => {});
  await once(stream, "ready");
  await new Promise((resolve) => session.ping(resolve)); // the simulator has received the headers
  socket.destroy();
  // The client opens another connection, and its push is answered.
  expect(await push()).toMatchObject({ status: 201 });
  expect(simulators.pushes()).toMatchObject([{ payload: { title: "Hello" }, status: 201 }]);
});

it("keeps subscriptions in a file: after a restart they answer as before", async () => {
  const shared = simulators;
  const folder = await mkdtemp(join(tmpdir(), "herald-subscriptions-"));
  const start = (port: number) =>
    startSimulators({
      identityFile: join(folder, "identity.json"),
      ports: { webpush: port },
      webpush: { subscriptionsFile: join(folder, "subscriptions.ndjson") },
    });
  try {
    simulators = await start(0);
    subscription = simulators.webpush.subscribe();
    const ended = simulators.webpush.subscribe();
    simulators.webpush.unsubscribe(ended.endpoint.split("/").at(-1) ?? "");
    expect(await push()).toMatchObject({ status: 201 });
    await simulators.stop();
    simulators = await start(Number(new URL(simulators.webpush.url).port));
    expect(await push()).toMatchObject({ status: 201 });
    const other = await authorization({}, { keys: otherVapid });
    expect(await push({ headers: { authorization: other } })).toMatchObject({ status: 403 });
    expect(await push({ path: new URL(ended.endpoint).pathname })).toMatchObject({ status: 410 });
    await simulators.stop();
  } finally {
    simulators = shared;
    await rm(folder, { recursive: true });
  }
});

describe("a correct push", () => {
  it("is answered 201, decrypted and recorded under its endpoint", async () => {
    const answer = await push();
    expect(answer).toMatchObject({ status: 201, body: "", headers: { ttl: "60" } });
    expect(answer.headers.location).toMatch(/^https:\/\/.*\/message\/[\w-]+$/);
    expect(simulators.pushes()).toMatchObject([
      {
        provider: "webpush",
        token: subscription.endpoint,
        payload: { title: "Hello", link_to: "/news/1" },
        status: 201,
        headers: { authorization: "vapid ***", ttl: "60", urgency: "high", topic: "news" },
      },
    ]);
  });

  it("may come over HTTP/1.1, without urgency, topic and text", async () => {
    const request = await parts({
      body: "",
      headers: { urgency: undefined, topic: undefined, "content-encoding": undefined },
    });
    expect(await callH1(simulators.webpush.url, simulators.ca, request)).toMatchObject({ status: 201 });
    expect(simulators.pushes()).toMatchObject([{ payload: null }]);
  });

  it("may be text that is not JSON", async () => {
    expect(await callH1(simulators.webpush.url, simulators.ca, await parts({ body: encrypt("hello") }))).toMatchObject({
      status: 201,
    });
    expect(simulators.pushes()).toMatchObject([{ payload: "hello" }]);
  });

  describe("of the type for Declarative Web Push", () => {
    const declare = (message: unknown) =>
      push({
        body: encrypt(typeof message === "string" ? message : JSON.stringify(message)),
        headers: { "content-type": "application/notification+json" },
      });
    const notification = { title: "Hello", navigate: "https://shop.example.com/#a" };

    it("is accepted if the browser would show it", async () => {
      const shown = { ...notification, body: "World", icon: "https://example.com/i.png", app_badge: "3", image: 7 };
      expect(await declare({ web_push: 8030, app_badge: 3, notification: shown, link_to: "/a" })).toMatchObject({
        status: 201,
      });
    });

    it.each([
      ["not JSON", "payload: not JSON"],
      [{ notification }, "payload: web_push: "],
      [{ web_push: 9001, notification }, "payload: web_push: "],
      [{ web_push: 8030 }, "payload: notification: "],
      [{ web_push: 8030, notification: { title: "Hello" } }, "payload: notification.navigate: "],
      [{ web_push: 8030, notification: { ...notification, navigate: "/a" } }, "payload: notification.navigate: "],
      [{ web_push: 8030, notification: { ...notification, title: "" } }, "payload: notification.title: "],
      [{ web_push: 8030, notification: { ...notification, app_badge: -1 } }, "payload: notification.app_badge: "],
      [{ web_push: 8030, notification: { ...notification, silent: "yes" } }, "payload: notification.silent: "],
    ])("is refused with what the browser drops it for: %j", async (message, problem) => {
      expect(await declare(message)).toMatchObject({ status: 400 });
      expect(simulators.pushes()[0]?.problem).toMatch(problem);
    });
  });

  it("shows the key that it was signed with, and binds a subscription that named none to it", async () => {
    expect(await push()).toMatchObject({ status: 201 });
    const other = { headers: { authorization: await authorization({}, { keys: otherVapid }) } };
    expect(await push(other)).toMatchObject({ status: 403 });
    expect(await push()).toMatchObject({ status: 201 });
    expect(simulators.pushes().map(({ status, vapidKey }) => [status, vapidKey])).toEqual([
      [201, vapid.publicKey],
      [403, otherVapid.publicKey],
      [201, vapid.publicKey],
    ]);
  });

  it("is kept no longer than the service keeps anything", async () => {
    expect((await push({ headers: { ttl: "9999999" } })).headers.ttl).toBe("2419200");
  });
});

describe("a wrong push", () => {
  const wrong: [string, () => Promise<Partial<HttpParts>> | Partial<HttpParts>, number][] = [
    ["GET", () => ({ method: "GET", body: "" }), 405],
    ["an unknown subscription", () => ({ path: "/push/unknown" }), 404],
    ["another path", () => ({ path: "/" }), 404],
    ["no TTL", () => ({ headers: { ttl: undefined } }), 400],
    ["a negative TTL", () => ({ headers: { ttl: "-1" } }), 400],
    ["an unknown urgency", () => ({ headers: { urgency: "urgent" } }), 400],
    ["a topic of 33 characters", () => ({ headers: { topic: "x".repeat(33) } }), 400],
    ["a topic with a blank", () => ({ headers: { topic: "a b" } }), 400],
    ["a name that is repeated", () => ({ body: encrypt('{"token":"a","b":{},"token":"c"}') }), 400],
    ["no content encoding", () => ({ headers: { "content-encoding": undefined } }), 415],
    ["the old encoding", () => ({ headers: { "content-encoding": "aesgcm" } }), 415],
    ["4,097 bytes", () => ({ body: Buffer.alloc(4097) }), 413],
    ["another subscription's keys", () => ({ body: encrypt("hello", simulators.webpush.subscribe()) }), 400],
    ["no authorization", () => ({ headers: { authorization: undefined } }), 401],
    ["another scheme", () => ({ headers: { authorization: "WebPush abc" } }), 401],
    ["no key", async () => ({ headers: { authorization: (await authorization()).replace(/, k=.*/, "") } }), 401],
    ["a key that is none", async () => ({ headers: { authorization: await authorization({}, { k: "abc" }) } }), 403],
    [
      "another key's signature",
      async () => ({ headers: { authorization: await authorization({}, { keys: otherVapid, k: vapid.publicKey }) } }),
      403,
    ],
    [
      "another audience",
      async () => ({ headers: { authorization: await authorization({ aud: "https://push.example" }) } }),
      403,
    ],
    ["no expiry", async () => ({ headers: { authorization: await authorization({ exp: undefined }) } }), 403],
    [
      "an expiry in the past",
      async () => ({ headers: { authorization: await authorization({ exp: inSeconds(-120) }) } }),
      403,
    ],
    [
      "an expiry in two days",
      async () => ({ headers: { authorization: await authorization({ exp: inSeconds(2 * 86_400) }) } }),
      403,
    ],
    ["no subject", async () => ({ headers: { authorization: await authorization({ sub: undefined }) } }), 403],
    [
      "a subject that is no URL",
      async () => ({ headers: { authorization: await authorization({ sub: "ops@example.org" }) } }),
      403,
    ],
  ];
  it.each(wrong)("%s", async (_name, given, status) => {
    const answer = await push(await given());
    expect(answer.status).toBe(status);
    expect(answer.body).toBeTruthy();
  });

  it.each(["x", "abcde", "order-1234567", "x".repeat(29)])(
    "the topic %s, which Apple cannot decode, is refused with Apple's reason",
    async (topic) => {
      expect(await push({ headers: { topic } })).toMatchObject({
        status: 400,
        body: JSON.stringify({ reason: "BadWebPushTopic" }),
      });
    },
  );
  it.each(["order-42", "collie-herd", "collie-updates"])("the topic %s is accepted", async (topic) => {
    expect(await push({ headers: { topic } })).toMatchObject({ status: 201 });
  });

  it.each([
    ...["mailto:push@localhost", "mailto:ops@herald.invalid", "mailto:ops@mac.local", "https://localhost/contact"],
    ...["mailto:mailto:ops@example.org", "mailto: ops@example.org", "mailto:<ops@example.org>", "https://intranet"],
    ...["mailto:a@example.org,b@example.org", "mailto:Ops <ops@example.org>"],
  ])("the subject %s is refused with Apple's reason", async (sub) => {
    expect(await push({ headers: { authorization: await authorization({ sub }) } })).toMatchObject({
      status: 403,
      body: JSON.stringify({ reason: "BadJwtToken" }),
    });
  });
  it.each(["https://example.org/contact?a=b", "mailto:first.last+push@mail.example.org"])(
    "the subject %s is accepted",
    async (sub) => {
      expect(await push({ headers: { authorization: await authorization({ sub }) } })).toMatchObject({ status: 201 });
    },
  );

  it("is recorded with what was wrong", async () => {
    await push({ headers: { ttl: undefined } });
    expect(simulators.pushes()).toMatchObject([{ token: subscription.endpoint, status: 400, problem: "ttl: missing" }]);
  });
});

describe("a subscription", () => {
  const control = (method: string, path: string, body?: unknown) =>
    fetch(simulators.control.url + path, { method, ...(body !== undefined && { body: JSON.stringify(body) }) });

  it("is made over the control API as a browser would hand it out, and ended", async () => {
    const response = await control("POST", "/webpush/subscriptions");
    expect(response.status).toBe(201);
    subscription = (await response.json()) as WebPushSubscription;
    expect(subscription).toEqual({
      endpoint: expect.stringMatching(/^https:\/\/.*\/push\/[\w-]{22}$/),
      expirationTime: null,
      keys: { p256dh: expect.stringMatching(/^[\w-]{87}$/), auth: expect.stringMatching(/^[\w-]{22}$/) },
    });
    expect(await push()).toMatchObject({ status: 201 });

    const id = subscription.endpoint.split("/").at(-1);
    expect((await control("DELETE", `/webpush/subscriptions/${id}`)).status).toBe(204);
    expect(await push()).toMatchObject({ status: 410 });
    expect((await control("DELETE", `/webpush/subscriptions/${id}`)).status).toBe(404);
  });

  it("may be bound to one VAPID key", async () => {
    const response = await control("POST", "/webpush/subscriptions", { applicationServerKey: otherVapid.publicKey });
    subscription = (await response.json()) as WebPushSubscription;
    expect(await push()).toMatchObject({ status: 403 });
    expect(await push({ headers: { authorization: await authorization({}, { keys: otherVapid }) } })).toMatchObject({
      status: 201,
    });
  });

  it("is not made from wrong options", async () => {
    const response = await control("POST", "/webpush/subscriptions", {
      applicationServerKey: "abc",
      prefix: "a/b",
      speed: 1,
    });
    expect(response.status).toBe(422);
    expect(await response.json()).toMatchObject({ errors: { length: 3 } });
  });
});

describe("a scripted answer", () => {
  it("is found by the beginning of the endpoint's last part, or of the endpoint", async () => {
    subscription = simulators.webpush.subscribe({ prefix: "dead-" });
    simulators.script([
      { provider: "webpush", tokenPrefix: "dead-", times: 1, status: 410 },
      { tokenPrefix: subscription.endpoint, status: 429, reason: "slow down", headers: { "retry-after": "5" } },
    ]);
    expect(await push()).toMatchObject({ status: 410 });
    expect(await push()).toMatchObject({ status: 429, body: "slow down", headers: { "retry-after": "5" } });
    subscription = simulators.webpush.subscribe();
    expect(await push()).toMatchObject({ status: 201 });
    expect(simulators.pushes().map(({ status }) => status)).toEqual([410, 429, 201]);
  });

  it.each(Object.entries(knownAnswers))("may be that of a real server: %s", async (known, answer) => {
    simulators.script([{ provider: "webpush", known }]);
    const { status, headers, body } = await push();
    expect({ status, body }).toEqual({ status: answer.status, body: answer.body });
    expect(headers).toMatchObject(answer.headers);
    expect(headers["retry-after"]).toBe(known === "autopush-back-off" ? "120" : undefined);
    if (known === "autopush-accepted") expect(headers.location).toHaveLength(255);
  });

  it("has Apple's form if its reason is Apple's", async () => {
    simulators.script([{ provider: "webpush", status: 403, reason: "BadJwtToken" }]);
    expect(await push()).toMatchObject({ status: 403, body: JSON.stringify({ reason: "BadJwtToken" }) });
  });
});
