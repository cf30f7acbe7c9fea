import { generateKeyPairSync } from "node:crypto";
import { newDeviceId, newNotificationId, newProjectId, type Recipient } from "@herald/contracts";
import { createHttp2Transport } from "@herald/http2-client";
import { type Simulators, type SimulatorsOptions, startSimulators } from "@herald/simulators";
import { afterEach, describe, expect, it } from "vitest";
import type { Message, ProviderClient } from "../provider-client.ts";
import { createAccessTokens } from "./access-tokens.ts";
import { createFcmClient } from "./client.ts";

const { privateKey, publicKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
const account = {
  type: "service_account" as const,
  project_id: "demo-1234",
  private_key: privateKey.export({ type: "pkcs8", format: "pem" }).toString(),
  client_email: "herald@demo-1234.iam.gserviceaccount.com",
};
const known = {
  clientEmail: account.client_email,
  projectId: account.project_id,
  publicKey: publicKey.export({ type: "spki", format: "pem" }).toString(),
};

const at = new Date();
const message: Message = {
  projectId: newProjectId(at),
  notificationId: newNotificationId(at),
  content: { title: "Hello", targets: ["all"] },
  expiresAt: new Date(at.getTime() + 3_600_000),
  platform: "android",
  lane: "direct",
};
const push = (token: string, tokenKind: "token" | "fid" = "token"): Recipient => ({
  id: newDeviceId(at),
  token,
  tokenAt: 0,
  tokenKind,
});
const send = (client: ProviderClient, device: Recipient) => client.prepare(message)(device, "open");

const cleanups: Array<() => Promise<void>> = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function simulate(options: SimulatorsOptions = {}): Promise<Simulators> {
  const simulators = await startSimulators({ fcm: { accounts: [known] }, ...options });
  cleanups.push(simulators.stop);
  return simulators;
}

function connect({ fcm, ca }: Simulators, serviceAccount = account, now = () => new Date()): ProviderClient {
  const settings = { service_account: serviceAccount, endpoint: fcm.url, ca };
  const client = createFcmClient({ settings, createTransport: createHttp2Transport, now });
  cleanups.push(client.close);
  return client;
}

const sendMany = async (client: ProviderClient, count: number) => {
  const outcomes = await Promise.all(
    Array.from({ length: count }, (_, index) => send(client, push(`device-${index}`))),
  );
  return [...new Set(outcomes.map(({ kind }) => kind))];
};

describe("a push", () => {
  it("is not sent above Google's limit of notification and data, which excludes the rest of the message", async () => {
    const simulators = await simulate();
    const client = connect(simulators);
    const outcomeOf = (length: number, token: string) =>
      client.prepare(message)(push(token), "open", { ...message.content, data: { text: "x".repeat(length) } });
    expect(await outcomeOf(3_700, "t".repeat(500))).toMatchObject({ kind: "accepted" });
    expect(await outcomeOf(4_100, "t")).toEqual({
      kind: "rejected",
      reason: "payload-too-large",
      providerReason: expect.stringMatching(/^4\d+ bytes, 4096 fit$/),
      notSent: true,
    });
    expect(simulators.pushes()).toHaveLength(1);
  });

  it("reaches a registration token or an installation id, with Google's name for it", async () => {
    const simulators = await simulate();
    const client = connect(simulators);
    const outcome = await send(client, push("abc:DEF-1"));
    expect(outcome).toEqual({
      kind: "accepted",
      providerId: expect.stringMatching(/^projects\/demo-1234\/messages\//),
    });
    expect(await send(client, push("cHkUvHDRT0mVg6gvEbWFaR", "fid"))).toMatchObject({ kind: "accepted" });
    expect(simulators.pushes({ provider: "fcm" }).map(({ token }) => token)).toEqual([
      "abc:DEF-1",
      "cHkUvHDRT0mVg6gvEbWFaR",
    ]);
    expect(simulators.pushes()[0]?.payload).toMatchObject({ notification: { title: "Hello" } });
  });

  it("with a malformed token is refused, but not as unregistered", async () => {
    const client = connect(await simulate());
    expect(await send(client, push("not a token"))).toMatchObject({ kind: "rejected", reason: "token-invalid" });
    expect(await send(client, push("short", "fid"))).toMatchObject({ kind: "rejected", reason: "token-invalid" });
  });
});

describe("answers", () => {
  it("become outcomes", async () => {
    const simulators = await simulate();
    const rule = (tokenPrefix: string, status: number, reason: string, headers?: Record<string, string>) => ({
      provider: "fcm",
      tokenPrefix,
      status,
      reason,
      ...(headers ? { headers } : {}),
    });
    simulators.script([
      rule("a", 404, "UNREGISTERED"),
      rule("b", 403, "SENDER_ID_MISMATCH"),
      rule("c", 401, "THIRD_PARTY_AUTH_ERROR"),
      rule("d", 429, "QUOTA_EXCEEDED"),
      rule("e", 503, "UNAVAILABLE", { "retry-after": "12" }),
      rule("f", 500, "INTERNAL"),
      { provider: "fcm", tokenPrefix: "g", rst: "INTERNAL_ERROR" },
    ]);
    const client = connect(simulators);
    expect(await send(client, push("a"))).toEqual({ kind: "unregistered", providerReason: "UNREGISTERED" });
    const tokenMismatch = { kind: "rejected", tokenMismatch: true };
    expect(await send(client, push("b"))).toEqual({
      ...tokenMismatch,
      reason: "topic-mismatch",
      providerReason: "SENDER_ID_MISMATCH",
    });
    expect(await send(client, push("c"))).toEqual({
      ...tokenMismatch,
      reason: "token-kind-mismatch",
      providerReason: "THIRD_PARTY_AUTH_ERROR",
    });
    expect(await send(client, push("d"))).toMatchObject({ kind: "deferred", retryAfterMs: 60_000 });
    expect(await send(client, push("e"))).toMatchObject({ kind: "deferred", retryAfterMs: 12_000 });
    expect(await send(client, push("f"))).toMatchObject({ kind: "deferred", providerReason: "INTERNAL" });
    expect(await send(client, push("g"))).toMatchObject({ kind: "unknown" });
  });
});

describe("access tokens", () => {
  it("are fetched once for many pushes", async () => {
    const simulators = await simulate();
    const client = connect(simulators);
    expect(await sendMany(client, 100)).toEqual(["accepted"]);
    expect(await sendMany(client, 100)).toEqual(["accepted"]);
    expect(simulators.fcm.tokensIssued()).toBe(1);
  });

  it("are replaced early, while the old one still serves, and waited for when it is over", async () => {
    let ahead = 0;
    const now = () => Date.now() + ahead;
    const { fcm, ca } = await simulate({ fcm: { accounts: [known], now } });
    const transport = createHttp2Transport({ origin: fcm.url, ca });
    cleanups.push(transport.close);
    const tokens = createAccessTokens(account, { transport, origin: fcm.url }, () => new Date(now()));
    const first = await tokens.current();
    ahead = 49 * 60_000;
    expect(tokens.current()).toBe(first);
    expect(fcm.tokensIssued()).toBe(1);
    ahead = 51 * 60_000;
    expect(tokens.current()).toBe(first);
    await expect.poll(() => tokens.current()).not.toBe(first);
    expect(fcm.tokensIssued()).toBe(2);
    ahead += 3_600_000;
    const next = tokens.current();
    expect(next).toBeInstanceOf(Promise);
    expect(await next).toMatch(/^Bearer /);
    expect(fcm.tokensIssued()).toBe(3);
  });

  it("that Google no longer accepts are replaced once, and the push is sent again", async () => {
    let ahead = 0;
    let serverAhead = 0;
    const simulators = await simulate({ fcm: { accounts: [known], now: () => Date.now() + ahead + serverAhead } });
    const client = connect(simulators, account, () => new Date(Date.now() + ahead));
    expect(await sendMany(client, 5)).toEqual(["accepted"]);
    simulators.script([{ provider: "fcm", status: 401, reason: "UNAUTHENTICATED", times: 5 }]);
    ahead = 120_000;
    expect(await sendMany(client, 5)).toEqual(["accepted"]);
    expect(simulators.fcm.tokensIssued()).toBe(2);
    // With a clock that is two hours off, no new token would be valid, so the client must not keep fetching them.
    simulators.script([]);
    serverAhead = 7_200_000;
    expect(await sendMany(client, 5)).toEqual(["misconfigured"]);
    expect(simulators.fcm.tokensIssued()).toBe(2);
  });

  it("are fetched again for the push that decides about a refusal, unless they are newer", async () => {
    const simulators = await simulate();
    const client = connect(simulators);
    const before = new Date();
    expect(await send(client, push("a"))).toMatchObject({ kind: "accepted" });
    client.renewToken(new Date(before.getTime() - 1));
    expect(await send(client, push("a"))).toMatchObject({ kind: "accepted" });
    expect(simulators.fcm.tokensIssued()).toBe(1);
    client.renewToken(new Date());
    expect(await send(client, push("a"))).toMatchObject({ kind: "accepted" });
    expect(simulators.fcm.tokensIssued()).toBe(2);
  });

  it("that are refused make the provider misconfigured, with one request for all pushes", async () => {
    const simulators = await simulate();
    const other = generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey;
    const client = connect(simulators, {
      ...account,
      private_key: other.export({ type: "pkcs8", format: "pem" }).toString(),
    });
    const outcomes = await Promise.all([1, 2, 3].map(() => send(client, push("a"))));
    const refused = { kind: "misconfigured", providerReason: "invalid_grant", detail: "Invalid JWT Signature." };
    expect(outcomes).toEqual(Array(3).fill(refused));
    expect(simulators.pushes()).toEqual([]);
  });

  it.each([
    [403, "<html>Blocked</html>"],
    [401, ""],
    [407, ""],
    [511, ""],
    [200, "<html>Sign in</html>"],
    [200, JSON.stringify({ token: "another form" })],
    [400, JSON.stringify({ message: "Blocked" })],
  ])("%i with %j is not from Google: the push waits", async (status, body) => {
    const simulators = await simulate();
    simulators.script([{ provider: "fcm-token", status, body }]);
    const { host } = new URL(simulators.fcm.url);
    expect(await send(connect(simulators), push("a"))).toMatchObject({
      kind: "deferred",
      problem: { reason: "not-the-provider", host },
      unprocessed: true,
    });
    expect(simulators.pushes()).toEqual([]);
  });

  it("that Google itself fails to make defer the push, also with a 4xx", async () => {
    const simulators = await simulate();
    const body = JSON.stringify({ error: "internal_failure", error_description: "Try later." });
    simulators.script([{ provider: "fcm-token", status: 400, body }]);
    expect(await send(connect(simulators), push("a"))).toMatchObject({
      kind: "deferred",
      providerReason: "internal_failure",
    });
  });

  it("whose server cannot be reached defer the push, with the host and the reason", async () => {
    const simulators = await simulate();
    const other = await simulate();
    const { host } = new URL(simulators.fcm.url);
    const client = createFcmClient({
      settings: { service_account: account, endpoint: simulators.fcm.url, ca: other.ca },
      createTransport: createHttp2Transport,
      now: () => new Date(),
    });
    cleanups.push(client.close);
    expect(await send(client, push("a"))).toMatchObject({
      kind: "deferred",
      providerReason: expect.stringContaining(`cannot reach ${host}: no access token: `),
      problem: { reason: "certificate-untrusted", host },
    });
  });

  it("that cannot be fetched defer the push, and are fetched again later", async () => {
    const simulators = await simulate();
    simulators.script([{ provider: "fcm-token", status: 503 }]);
    let ahead = 0;
    const client = connect(simulators, account, () => new Date(Date.now() + ahead));
    expect(await send(client, push("a"))).toMatchObject({ kind: "deferred" });
    simulators.script([]);
    expect(await send(client, push("a"))).toMatchObject({ kind: "deferred" });
    ahead = 6_000;
    expect(await send(client, push("a"))).toMatchObject({ kind: "accepted" });
  });
});
