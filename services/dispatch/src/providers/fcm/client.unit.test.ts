import { generateKeyPairSync } from "node:crypto";
import { newNotificationId, newProjectId } from "@herald/contracts";
import { createHttp2Transport } from "@herald/http2-client";
import { renderFcm } from "@herald/payload";
import { type Simulators, type SimulatorsOptions, startSimulators } from "@herald/simulators";
import { afterEach, describe, expect, it } from "vitest";
import { createAccessTokens } from "./access-tokens.ts";
import { createFcmClient, type FcmClient } from "./client.ts";

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
const rendering = renderFcm(
  { title: "Hello", targets: ["all"] },
  { projectId: newProjectId(at), notificationId: newNotificationId(at) },
  "android",
  { ttlSeconds: 3_600, apnsExpiration: "0" },
);
const push = (token: string, kind: "token" | "fid" = "token") => ({ body: rendering.body({ token, kind }, "open") });

const cleanups: Array<() => Promise<void>> = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function simulate(options: SimulatorsOptions = {}): Promise<Simulators> {
  const simulators = await startSimulators({ fcm: { accounts: [known] }, ...options });
  cleanups.push(simulators.stop);
  return simulators;
}

function connect({ fcm, ca }: Simulators, serviceAccount = account, now = () => new Date()): FcmClient {
  const settings = { service_account: serviceAccount, endpoint: fcm.url, ca };
  const client = createFcmClient({ settings, createTransport: createHttp2Transport, now });
  cleanups.push(client.close);
  return client;
}

const sendMany = async (client: FcmClient, count: number) => {
  const outcomes = await Promise.all(Array.from({ length: count }, (_, index) => client.send(push(`device-${index}`))));
  return [...new Set(outcomes.map(({ kind }) => kind))];
};

describe("a push", () => {
  it("reaches a registration token or an installation id, with Google's name for it", async () => {
    const simulators = await simulate();
    const client = connect(simulators);
    const outcome = await client.send(push("abc:DEF-1"));
    expect(outcome).toEqual({
      kind: "accepted",
      providerId: expect.stringMatching(/^projects\/demo-1234\/messages\//),
    });
    expect(await client.send(push("cHkUvHDRT0mVg6gvEbWFaR", "fid"))).toMatchObject({ kind: "accepted" });
    expect(simulators.pushes({ provider: "fcm" }).map(({ token }) => token)).toEqual([
      "abc:DEF-1",
      "cHkUvHDRT0mVg6gvEbWFaR",
    ]);
    expect(simulators.pushes()[0]?.payload).toMatchObject({ notification: { title: "Hello" } });
  });

  it("whose token is none is refused, and not a dead device", async () => {
    const client = connect(await simulate());
    expect(await client.send(push("not a token"))).toMatchObject({ kind: "rejected", reason: "token-invalid" });
    expect(await client.send(push("short", "fid"))).toMatchObject({ kind: "rejected", reason: "token-invalid" });
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
    expect(await client.send(push("a"))).toEqual({ kind: "unregistered", providerReason: "UNREGISTERED" });
    const tokenMismatch = { kind: "rejected", tokenMismatch: true };
    expect(await client.send(push("b"))).toEqual({
      ...tokenMismatch,
      reason: "topic-mismatch",
      providerReason: "SENDER_ID_MISMATCH",
    });
    expect(await client.send(push("c"))).toEqual({
      ...tokenMismatch,
      reason: "token-kind-mismatch",
      providerReason: "THIRD_PARTY_AUTH_ERROR",
    });
    expect(await client.send(push("d"))).toMatchObject({ kind: "deferred", retryAfterMs: 60_000 });
    expect(await client.send(push("e"))).toMatchObject({ kind: "deferred", retryAfterMs: 12_000 });
    expect(await client.send(push("f"))).toMatchObject({ kind: "deferred", providerReason: "INTERNAL" });
    expect(await client.send(push("g"))).toMatchObject({ kind: "unknown" });
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
    const { fcm, ca } = await simulate();
    const transport = createHttp2Transport({ origin: fcm.url, ca });
    cleanups.push(transport.close);
    let ahead = 0;
    const tokens = createAccessTokens(account, { transport, origin: fcm.url }, () => new Date(Date.now() + ahead));
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

  it("that Google no longer takes are replaced once, and the push is sent again", async () => {
    let serverAhead = 0;
    const simulators = await simulate({ fcm: { accounts: [known], now: () => Date.now() + serverAhead } });
    let ahead = 0;
    const client = connect(simulators, account, () => new Date(Date.now() + ahead));
    expect(await sendMany(client, 5)).toEqual(["accepted"]);
    simulators.script([{ provider: "fcm", status: 401, reason: "UNAUTHENTICATED", times: 5 }]);
    ahead = 120_000;
    expect(await sendMany(client, 5)).toEqual(["accepted"]);
    expect(simulators.fcm.tokensIssued()).toBe(2);
    // A clock that is two hours off: no token of this moment would be good, so none is fetched again and again.
    simulators.script([]);
    serverAhead = 7_200_000;
    expect(await sendMany(client, 5)).toEqual(["misconfigured"]);
    expect(simulators.fcm.tokensIssued()).toBe(2);
  });

  it("that are refused make the credential wrong, without asking for each push", async () => {
    const simulators = await simulate();
    const other = generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey;
    const client = connect(simulators, {
      ...account,
      private_key: other.export({ type: "pkcs8", format: "pem" }).toString(),
    });
    const outcomes = await Promise.all([1, 2, 3].map(() => client.send(push("a"))));
    expect(outcomes).toEqual(Array(3).fill({ kind: "misconfigured", providerReason: "invalid_grant" }));
    expect(simulators.pushes()).toEqual([]);
  });

  it("whose server is not reached defer, and say which server and why", async () => {
    const simulators = await simulate();
    const other = await simulate();
    const { host } = new URL(simulators.fcm.url);
    const client = createFcmClient({
      settings: { service_account: account, endpoint: simulators.fcm.url, ca: other.ca },
      createTransport: createHttp2Transport,
      now: () => new Date(),
    });
    cleanups.push(client.close);
    expect(await client.send(push("a"))).toMatchObject({
      kind: "deferred",
      providerReason: expect.stringContaining(`cannot reach ${host}: no access token: `),
      problem: { reason: "certificate-untrusted", host },
    });
  });

  it("that cannot be fetched defer, and are fetched again later", async () => {
    const simulators = await simulate();
    simulators.script([{ provider: "fcm-token", status: 503 }]);
    let ahead = 0;
    const client = connect(simulators, account, () => new Date(Date.now() + ahead));
    expect(await client.send(push("a"))).toMatchObject({ kind: "deferred" });
    simulators.script([]);
    expect(await client.send(push("a"))).toMatchObject({ kind: "deferred" });
    ahead = 6_000;
    expect(await client.send(push("a"))).toMatchObject({ kind: "accepted" });
  });
});
