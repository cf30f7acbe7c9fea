import { generateKeyPairSync } from "node:crypto";
import {
  type ActivityPush,
  type ApnsSettings,
  newDeviceId,
  newNotificationId,
  newProjectId,
  type Recipient,
} from "@herald/contracts";
import { createHttp2Transport, type TransportOptions } from "@herald/http2-client";
import { type Simulators, type SimulatorsOptions, startSimulators } from "@herald/simulators";
import { generate } from "selfsigned";
import { afterEach, describe, expect, it } from "vitest";
import { apnsId } from "../../domain/batch.ts";
import type { Message, ProviderClient } from "../provider-client.ts";
import { createApnsClient, createTokenCache } from "./client.ts";
import { checkApnsSettings } from "./settings.ts";

const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
const key = {
  key_id: "ABCDE12345",
  team_id: "TEAM123456",
  private_key: privateKey.export({ type: "pkcs8", format: "pem" }).toString(),
};
const known = {
  keyId: key.key_id,
  teamId: key.team_id,
  publicKey: publicKey.export({ type: "spki", format: "pem" }).toString(),
};
const common = { bundle_id: "com.example.app", environment: "production" } as const;
const token = (first: string) => first.padEnd(64, "0");

type Push = Message & Recipient;

const push = (over: Partial<Push> = {}): Push => ({
  id: newDeviceId(new Date()),
  projectId: newProjectId(new Date()),
  notificationId: newNotificationId(new Date()),
  token: token("aa"),
  tokenAt: 0,
  platform: "ios",
  lane: "direct",
  content: { title: "Hello", targets: ["all"], collapse_id: "order-42" },
  expiresAt: new Date(Date.now() + 3_600_000),
  ...over,
});

const send = (client: ProviderClient, one: Push) => client.prepare(one)(one, "open");

const cleanups: Array<() => Promise<void>> = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function simulate(options: SimulatorsOptions = {}): Promise<Simulators> {
  const simulators = await startSimulators({ apns: { keys: [known] }, ...options });
  cleanups.push(simulators.stop);
  return simulators;
}

type Extra = {
  now?: () => Date;
  createTransport?: (options: TransportOptions) => ReturnType<typeof createHttp2Transport>;
};

function connect(
  settings: ApnsSettings,
  { now = () => new Date(), createTransport = createHttp2Transport }: Extra = {},
): ProviderClient {
  const client = createApnsClient({ settings, tokens: createTokenCache(now), createTransport, now });
  cleanups.push(client.close);
  return client;
}

const custom = ({ apns, ca }: Simulators) => ({ ...key, ...common, endpoint: apns.url, ca });

describe("a push", () => {
  it("has every header and the rendered payload", async () => {
    const simulators = await simulate();
    const sent = push();
    expect(await send(connect(custom(simulators)), sent)).toEqual({ kind: "accepted" });
    const [seen] = simulators.pushes();
    expect(seen).toMatchObject({
      token: sent.token,
      payload: { aps: { alert: { title: "Hello" } } },
      headers: {
        "apns-push-type": "alert",
        "apns-topic": "com.example.app",
        "apns-priority": "10",
        "apns-expiration": String(Math.floor(sent.expiresAt.getTime() / 1_000)),
        "apns-id": apnsId(sent.notificationId, sent.id),
        "apns-collapse-id": "order-42",
        authorization: expect.stringMatching(/^bearer/),
      },
    });
  });

  it.each([
    ["whose time is over", { expiresAt: new Date(Date.now() - 1) }],
    ["with a ttl of 0", { content: { title: "Hello", targets: ["all"], ttl: 0 } }],
  ])("%s is for now or never", async (_, over) => {
    const simulators = await simulate();
    await send(connect(custom(simulators)), push(over));
    expect(simulators.pushes()[0]?.headers["apns-expiration"]).toBe("0");
  });

  it("carries the same id when it is sent again", async () => {
    const simulators = await simulate();
    simulators.script([{ provider: "apns", status: 503, reason: "Shutdown", times: 1 }]);
    const client = connect(custom(simulators));
    const sent = push();
    expect(await send(client, sent)).toMatchObject({
      kind: "deferred",
      providerReason: "Shutdown",
      retryAfterMs: undefined,
    });
    expect(await send(client, sent)).toEqual({ kind: "accepted" });
    const [first, second] = simulators.pushes();
    expect(first?.headers["apns-id"]).toBe(second?.headers["apns-id"]);
  });

  it("is not sent above Apple's limit, which is larger for VoIP", async () => {
    const simulators = await simulate();
    const client = connect(custom(simulators));
    const data = (bytes: number) => ({
      content: { title: "Hello", targets: ["all"], data: { text: "ä".repeat(bytes / 2) } },
    });
    expect(await send(client, push(data(3_800)))).toEqual({ kind: "accepted" });
    expect(await send(client, push(data(4_000)))).toEqual({
      kind: "rejected",
      reason: "payload-too-large",
      providerReason: expect.stringMatching(/^4\d+ bytes, 4096 fit$/),
      notSent: true,
    });
    const voip = push({ content: { ...data(4_800).content, push_type: "voip" } });
    expect(await send(client, voip)).not.toMatchObject({ reason: "payload-too-large" });
    const own = { ...push().content, data: { text: "x".repeat(5_000) } };
    const sent = push();
    expect(await client.prepare(sent)(sent, "open", own)).toMatchObject({ reason: "payload-too-large", notSent: true });
    expect(simulators.pushes()).toHaveLength(2);
  });

  it("is not sent to a malformed token", async () => {
    const simulators = await simulate();
    const client = connect(custom(simulators));
    for (const wrong of ["", "abc", "zz", "aa/../bb", "aa\r\nx: y", "aa bb"])
      expect(await send(client, push({ token: wrong }))).toMatchObject({ kind: "rejected", reason: "token-invalid" });
    expect(simulators.pushes()).toEqual([]);
  });
});

describe("an app of a device", () => {
  const driver = "com.example.driver";
  const twoApps = (simulators: Simulators) => ({ ...custom(simulators), bundle_ids: [driver] });

  it("is the topic of its pushes; the settings' app is the topic of others", async () => {
    const simulators = await simulate();
    const client = connect(twoApps(simulators));
    expect(await send(client, push({ app: driver }))).toEqual({ kind: "accepted" });
    expect(await send(client, push({ app: common.bundle_id }))).toEqual({ kind: "accepted" });
    expect(await send(client, push())).toEqual({ kind: "accepted" });
    expect(simulators.pushes().map(({ headers }) => headers["apns-topic"])).toEqual([
      driver,
      common.bundle_id,
      common.bundle_id,
    ]);
  });

  it("fails its own push alone when the settings do not name it", async () => {
    const simulators = await simulate();
    const client = connect(twoApps(simulators));
    expect(await send(client, push({ app: "com.example.other" }))).toEqual({
      ...{ kind: "rejected", reason: "app-not-configured", providerReason: "", notSent: true },
    });
    expect(simulators.pushes()).toEqual([]);
  });

  it.each(["BadTopic", "TopicDisallowed"])("pauses nothing when Apple refuses it with %s", async (reason) => {
    const simulators = await simulate();
    const client = connect(twoApps(simulators));
    simulators.script([{ provider: "apns", status: 400, reason }]);
    expect(await send(client, push({ app: driver }))).toEqual({
      ...{ kind: "rejected", reason: "app-not-configured", providerReason: reason, tokenMismatch: true },
    });
    // With several apps, what is wrong with the project's own one pauses no other, either.
    expect(await send(client, push())).toMatchObject({ reason: "app-not-configured", tokenMismatch: true });
    expect(await send(connect(custom(simulators)), push())).toEqual({ kind: "misconfigured", providerReason: reason });
    simulators.script([{ provider: "apns", status: 403, reason: "InvalidProviderToken" }]);
    expect(await send(client, push({ app: driver }))).toMatchObject({ kind: "misconfigured" });
  });
});

describe("a push type", () => {
  const voip: Partial<Push> = { content: { targets: ["all"], push_type: "voip", ttl: 0, data: { call: "17" } } };

  it("has its topic and its header, and a VoIP push is not stored", async () => {
    const simulators = await simulate();
    expect(await send(connect(custom(simulators)), push(voip))).toEqual({ kind: "accepted" });
    expect(simulators.pushes()[0]?.headers).toMatchObject({
      "apns-push-type": "voip",
      "apns-topic": "com.example.app.voip",
      "apns-priority": "10",
      "apns-expiration": "0",
    });
  });

  it("that Apple refuses to the app pauses nothing", async () => {
    const simulators = await simulate();
    const client = connect(custom(simulators));
    simulators.script([{ provider: "apns", status: 400, reason: "TopicDisallowed" }]);
    expect(await send(client, push(voip))).toEqual({
      ...{ kind: "rejected", reason: "push-type-refused", providerReason: "TopicDisallowed", tokenMismatch: true },
    });
    expect(await send(client, push())).toMatchObject({ kind: "misconfigured" });
  });
});

describe("answers", () => {
  it("become outcomes", async () => {
    const simulators = await simulate();
    simulators.script([
      { provider: "apns", tokenPrefix: "01", status: 410, reason: "Unregistered", timestamp: 1_700_000_000_000 },
      { provider: "apns", tokenPrefix: "02", status: 400, reason: "DeviceTokenNotForTopic" },
      { provider: "apns", tokenPrefix: "03", status: 403, reason: "InvalidProviderToken" },
      { provider: "apns", tokenPrefix: "04", status: 429, reason: "TooManyRequests", headers: { "retry-after": "30" } },
      { provider: "apns", tokenPrefix: "05", status: 500, body: "" },
      { provider: "apns", tokenPrefix: "06", rst: "INTERNAL_ERROR" },
      { provider: "apns", tokenPrefix: "07", status: 200, body: "<html>Sign in</html>" },
    ]);
    const client = connect(custom(simulators));
    const outcome = (first: string) => send(client, push({ token: token(first) }));
    expect(await outcome("01")).toEqual({
      kind: "unregistered",
      at: new Date(1_700_000_000_000),
      providerReason: "Unregistered",
    });
    expect(await outcome("02")).toMatchObject({ kind: "rejected", reason: "topic-mismatch" });
    expect(await outcome("03")).toEqual({ kind: "misconfigured", providerReason: "InvalidProviderToken" });
    expect(await outcome("04")).toMatchObject({ kind: "deferred", retryAfterMs: 30_000 });
    expect(await outcome("05")).toMatchObject({ kind: "deferred", providerReason: "HTTP 500" });
    expect(await outcome("06")).toMatchObject({ kind: "unknown" });
    expect(await outcome("07")).toMatchObject({ kind: "deferred", problem: { reason: "not-the-provider" } });
  });

  it("are deferred when the provider does not answer", async () => {
    const simulators = await simulate();
    const client = connect(custom(simulators));
    await simulators.stop();
    expect(await send(client, push())).toMatchObject({
      kind: "deferred",
      providerReason: expect.stringMatching(/ECONNREFUSED/),
      problem: { reason: "connection-refused", host: new URL(simulators.apns.url).host },
    });
  });
});

describe("the provider token", () => {
  it("is shared by many pushes, and renewed within the hour", async () => {
    let time = Date.now();
    const now = () => new Date(time);
    const simulators = await simulate({ apns: { keys: [known], limitTokenUpdates: true, now: () => time } });
    const client = connect(custom(simulators), { now });
    for (let minute = 0; minute < 180; minute += 10) {
      const outcomes = await Promise.all(Array.from({ length: 20 }, () => send(client, push())));
      expect(new Set(outcomes.map(({ kind }) => kind))).toEqual(new Set(["accepted"]));
      time += 10 * 60_000;
    }
  });

  it("is signed again, once, when Apple calls it expired, and the push is sent again", async () => {
    let ahead = 0;
    const simulators = await simulate({ apns: { keys: [known], now: () => Date.now() + ahead } });
    const client = connect(custom(simulators));
    expect(await send(client, push())).toEqual({ kind: "accepted" });
    simulators.script([{ provider: "apns", status: 403, reason: "ExpiredProviderToken", times: 1 }]);
    expect(await send(client, push())).toEqual({ kind: "accepted" });
    expect(simulators.pushes().map(({ status }) => status)).toEqual([200, 403, 200]);
    // With a clock that is two hours off, every token has expired. Signing more of them would not help.
    ahead = 7_200_000;
    const outcomes = await Promise.all(Array.from({ length: 30 }, () => send(client, push())));
    for (const outcome of outcomes)
      expect(outcome).toEqual({ kind: "misconfigured", providerReason: "ExpiredProviderToken" });
    expect(simulators.pushes()).toHaveLength(33);
  });
});

describe("the other environment", () => {
  /** Two simulators in place of Apple's two hosts. */
  async function both() {
    const [production, sandbox] = [await simulate(), await simulate()];
    const at: Record<string, Simulators> = {
      "https://api.push.apple.com": production,
      "https://api.sandbox.push.apple.com": sandbox,
      "https://api-manage-broadcast.push.apple.com:2196": production,
      "https://api-manage-broadcast.sandbox.push.apple.com:2195": sandbox,
    };
    const client = connect(
      { ...key, ...common },
      {
        createTransport(options) {
          const simulators = at[options.origin];
          if (simulators === undefined) throw new Error(`unexpected origin ${options.origin}`);
          return createHttp2Transport({ ...options, origin: simulators.apns.url, ca: simulators.ca });
        },
      },
    );
    const bad = (simulators: Simulators) =>
      simulators.script([{ provider: "apns", status: 400, reason: "BadDeviceToken" }]);
    return { production, sandbox, client, bad };
  }

  it("is tried once when a token is bad in the first", async () => {
    const { production, sandbox, client, bad } = await both();
    bad(production);
    expect(await send(client, push())).toEqual({ kind: "accepted" });
    expect(await send(client, push({ environment: "sandbox" }))).toEqual({ kind: "accepted" });
    expect([production.pushes().length, sandbox.pushes().length]).toEqual([1, 2]);
  });

  it("decides the outcome, unless it only refuses the credential", async () => {
    const { production, sandbox, client, bad } = await both();
    bad(production);
    bad(sandbox);
    // Both hosts say that it is no token, so its device is retired.
    expect(await send(client, push())).toMatchObject({ kind: "rejected", reason: "token-invalid", badToken: true });
    sandbox.script([{ provider: "apns", status: 410, reason: "Unregistered", timestamp: 5 }]);
    expect(await send(client, push())).toMatchObject({ kind: "unregistered" });
    sandbox.script([{ provider: "apns", status: 403, reason: "BadEnvironmentKeyInToken" }]);
    const unsure = await send(client, push());
    expect(unsure).toMatchObject({ kind: "rejected", reason: "token-invalid" });
    expect(unsure).not.toHaveProperty("badToken");
    sandbox.script([{ provider: "apns", status: 503, reason: "Shutdown" }]);
    expect(await send(client, push())).toMatchObject({ kind: "deferred", elsewhere: true });
  });

  it("may refuse the credential for a device that names it; a refusal in the project's own is misconfigured", async () => {
    const { production, sandbox, client } = await both();
    const refuse = { provider: "apns", status: 403, reason: "BadEnvironmentKeyIdInToken" };
    for (const host of [production, sandbox]) host.script([refuse]);
    const providerReason = "BadEnvironmentKeyIdInToken";
    expect(await send(client, push({ environment: "sandbox" }))).toEqual({
      ...{ kind: "rejected", reason: "environment-mismatch", tokenMismatch: true, providerReason },
    });
    expect(await send(client, push({ environment: "production" }))).toEqual({ kind: "misconfigured", providerReason });
    expect(await send(client, push())).toEqual({ kind: "misconfigured", providerReason });
  });

  it("does not know a channel of the first", async () => {
    const { production, sandbox, client, bad } = await both();
    const activity: ActivityPush = {
      ...{ id: "match-81", event: "start", timestamp: 1_900_000_000, content_state: {} },
      ...{ attributes_type: "MatchAttributes", attributes: {} },
    };
    const name = `${common.bundle_id}/production`;
    const started = push({ content: { targets: ["all"], push_type: "liveactivity", activity } });
    bad(production);
    const post = client.prepare({ ...started, channels: new Map([[name, "Y2hhbm5lbA=="]]) });
    expect(await post({ ...started, channels: true }, "open")).toEqual({ kind: "accepted" });
    const [first, second] = [production, sandbox].map((simulators) => simulators.pushes()[0]?.payload);
    expect(first).toMatchObject({ aps: { "input-push-channel": "Y2hhbm5lbA==" } });
    expect(first).not.toHaveProperty("aps.input-push-token");
    expect(second).toMatchObject({ aps: { "input-push-token": 1 } });
    expect(second).not.toHaveProperty("aps.input-push-channel");
  });

  it("has channels and 10,000 places of its own", async () => {
    const { production, sandbox, client } = await both();
    const app = common.bundle_id;
    const body = JSON.stringify({ app, count: 10_000 });
    await fetch(`${production.control.url}/apns/channels`, { method: "POST", body });
    const refused = { kind: "refused", reason: "CannotCreateChannelConfig" };
    expect(await client.channels?.ask("make", `${app}/production`)).toEqual(refused);
    const made = await client.channels?.ask("make", `${app}/sandbox`);
    const ids = sandbox.channels.list().map(({ id }) => id);
    expect([ids.length, made]).toEqual([1, { kind: "done", ids }]);
    expect(await client.channels?.ask("list", `${app}/sandbox`)).toEqual({ kind: "done", ids });
    expect(production.channels.list()).toHaveLength(10_000);
  });

  it("is not tried when the project has an endpoint of its own", async () => {
    const simulators = await simulate();
    simulators.script([{ provider: "apns", status: 400, reason: "BadDeviceToken" }]);
    expect(await send(connect(custom(simulators)), push())).toMatchObject({
      kind: "rejected",
      reason: "token-invalid",
      badToken: true,
    });
    expect(simulators.pushes()).toHaveLength(1);
  });
});

it("authenticates with the certificate of its key, wherever a file has it", async () => {
  const simulators = await simulate();
  const authority = await generate([{ name: "commonName", value: "Issuer" }], {
    extensions: [{ name: "basicConstraints", cA: true, critical: true }],
  });
  const { cert, private: key } = await generate([{ name: "commonName", value: "Apple Push Services" }], {
    ca: { key: authority.private, cert: authority.cert },
  });
  const settings = checkApnsSettings(
    {
      ...common,
      certificate: `${authority.cert}\n${cert}`,
      private_key: key,
      endpoint: simulators.apns.url,
      ca: simulators.ca,
    },
    { customEndpoints: true, now: new Date() },
  );
  expect(await send(connect(settings), push())).toEqual({ kind: "accepted" });
});

it("authenticates with a certificate instead", async () => {
  const simulators = await simulate();
  const { cert, private: key } = await generate([{ name: "commonName", value: "Apple Push Services" }]);
  const client = connect({
    ...common,
    certificate: cert,
    private_key: key,
    endpoint: simulators.apns.url,
    ca: simulators.ca,
  });
  expect(await send(client, push())).toEqual({ kind: "accepted" });
  expect(simulators.pushes()[0]?.headers).not.toHaveProperty("authorization");
});
