import { generateKeyPairSync } from "node:crypto";
import { JWT } from "google-auth-library";
import { importPKCS8, SignJWT } from "jose";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { callH1, callH2, type HttpParts } from "../../test/https-client.ts";
import { startSimulators } from "../start-simulators.ts";
import type { Simulators } from "../types.ts";

const pair = () =>
  generateKeyPairSync("rsa", {
    modulusLength: 2048,
    publicKeyEncoding: { type: "spki", format: "pem" },
    privateKeyEncoding: { type: "pkcs8", format: "pem" },
  });
const [mine, other] = [pair(), pair()];
const clientEmail = "sender@herald-demo.iam.gserviceaccount.com";
const scope = "https://www.googleapis.com/auth/firebase.messaging";

let now = Date.parse("2026-01-01T00:00:00Z");
let simulators: Simulators;
let accessToken: string;

beforeAll(async () => {
  simulators = await startSimulators({
    fcm: { accounts: [{ clientEmail, projectId: "herald-demo", publicKey: mine.publicKey }], now: () => now },
  });
  accessToken = JSON.parse((await requestToken(await assertion())).body).access_token;
});
afterAll(() => simulators.stop());
beforeEach(() => simulators.clear());

const seconds = () => Math.floor(now / 1000);
const assertion = async (claims: object = {}, { key = mine.privateKey, alg = "RS256" } = {}) =>
  new SignJWT({
    iss: clientEmail,
    scope,
    aud: "https://oauth2.googleapis.com/token",
    iat: seconds(),
    exp: seconds() + 3600,
    ...claims,
  })
    .setProtectedHeader({ alg, typ: "JWT" })
    .sign(await importPKCS8(key, alg));

const requestToken = (jwt: string, form: Record<string, string> = {}, headers: HttpParts["headers"] = {}) =>
  callH2(simulators.fcm.url, simulators.ca, {
    path: "/token",
    headers: { "content-type": "application/x-www-form-urlencoded", ...headers },
    body: new URLSearchParams({
      grant_type: "urn:ietf:params:oauth:grant-type:jwt-bearer",
      assertion: jwt,
      ...form,
    }).toString(),
  });

const message = {
  token: "device-token:APA91b_1",
  data: { link_to: "/news/1" },
  notification: { title: "Hello", body: "World" },
  android: { priority: "HIGH", ttl: "3600s" },
};
const sendRequest = (
  body: unknown = { message },
  { path = "/v1/projects/herald-demo/messages:send", ...parts }: Partial<HttpParts> = {},
): HttpParts => ({
  path,
  body: typeof body === "string" ? body : JSON.stringify(body),
  ...parts,
  headers: { authorization: `Bearer ${accessToken}`, "content-type": "application/json", ...parts.headers },
});
const send = (body?: unknown, parts?: Partial<HttpParts>) =>
  callH2(simulators.fcm.url, simulators.ca, sendRequest(body, parts));

describe("the token endpoint", () => {
  it("gives an access token for an hour", async () => {
    const before = simulators.fcm.tokensIssued();
    const { status, body } = await requestToken(await assertion());
    expect([status, JSON.parse(body)]).toEqual([
      200,
      { access_token: expect.stringMatching(/^ya29\./), expires_in: 3599, token_type: "Bearer" },
    ]);
    expect(simulators.fcm.tokensIssued()).toBe(before + 1);
  });

  it("takes its own address as the audience, over HTTP/1.1 too", async () => {
    const body = new URLSearchParams({
      grant_type: "urn:ietf:params:oauth:grant-type:jwt-bearer",
      assertion: await assertion({ aud: `${simulators.fcm.url}/token` }),
    });
    const headers = { "content-type": "application/x-www-form-urlencoded" };
    expect(
      await callH1(simulators.fcm.url, simulators.ca, { path: "/token", headers, body: body.toString() }),
    ).toMatchObject({ status: 200 });
  });

  it("gives Google's own library a token", async () => {
    const real = await startSimulators({
      fcm: { accounts: [{ clientEmail, projectId: "herald-demo", publicKey: mine.publicKey }] },
    });
    const client = new JWT({ email: clientEmail, key: mine.privateKey, scopes: [scope] });
    client.transporter.defaults = {
      ...client.transporter.defaults,
      // The library always calls Google's address, so this redirects its request to the simulator.
      fetchImplementation: async (input: string | URL | Request, init?: RequestInit) => {
        const request = new Request(input, init);
        const headers = Object.fromEntries(request.headers);
        const answer = await callH2(real.fcm.url, real.ca, { path: "/token", headers, body: await request.text() });
        return new Response(answer.body, { status: answer.status, headers: { "content-type": "application/json" } });
      },
    };
    expect((await client.authorize()).access_token).toMatch(/^ya29\./);
    await real.stop();
  });

  const wrong: [string, () => Promise<{ status: number; body: string }>, string][] = [
    ["another key", async () => requestToken(await assertion({}, { key: other.privateKey })), "invalid_grant"],
    ["another account", async () => requestToken(await assertion({ iss: "x@example.org" })), "invalid_grant"],
    ["no issuer", async () => requestToken(await assertion({ iss: undefined })), "invalid_grant"],
    ["another algorithm", async () => requestToken(await assertion({}, { alg: "RS512" })), "invalid_grant"],
    ["another audience", async () => requestToken(await assertion({ aud: "https://example.org" })), "invalid_grant"],
    ["two hours", async () => requestToken(await assertion({ exp: seconds() + 7200 })), "invalid_grant"],
    [
      "yesterday",
      async () => requestToken(await assertion({ iat: seconds() - 86_400, exp: seconds() - 82_800 })),
      "invalid_grant",
    ],
    [
      "tomorrow",
      async () => requestToken(await assertion({ iat: seconds() + 86_400, exp: seconds() + 88_000 })),
      "invalid_grant",
    ],
    [
      "another scope",
      async () => requestToken(await assertion({ scope: "https://www.googleapis.com/auth/drive" })),
      "invalid_scope",
    ],
    ["no JWT", async () => requestToken("abc"), "invalid_grant"],
    [
      "another grant",
      async () => requestToken(await assertion(), { grant_type: "password" }),
      "unsupported_grant_type",
    ],
    [
      "a JSON body",
      async () => requestToken(await assertion(), {}, { "content-type": "application/json" }),
      "invalid_request",
    ],
  ];
  it.each(wrong)("refuses %s", async (_name, ask, error) => {
    const { status, body } = await ask();
    expect([status, JSON.parse(body)]).toEqual([400, { error, error_description: expect.any(String) }]);
  });

  it("follows a script that names it, and no other", async () => {
    simulators.script([
      { status: 503 },
      { provider: "fcm-token", tokenPrefix: "sender@", times: 1, status: 500, reason: "internal_failure" },
    ]);
    expect(await requestToken(await assertion())).toMatchObject({
      status: 500,
      body: expect.stringContaining("internal_failure"),
    });
    expect(await requestToken(await assertion())).toMatchObject({ status: 200 });
    expect(simulators.pushes()).toEqual([]);
  });
});

describe("a correct message", () => {
  it("is answered with its name and recorded as the device gets it", async () => {
    const { status, body } = await send();
    const { name } = JSON.parse(body);
    expect(status).toBe(200);
    expect(name).toMatch(/^projects\/herald-demo\/messages\/0:/);
    const { token, ...rest } = message;
    expect(simulators.pushes()).toMatchObject([
      { provider: "fcm", token, payload: rest, status: 200, id: name, headers: { authorization: "Bearer ***" } },
    ]);
    expect(simulators.pushes()[0]?.payload).not.toHaveProperty("token");
  });

  it("may come over HTTP/1.1", async () => {
    expect(await callH1(simulators.fcm.url, simulators.ca, sendRequest())).toMatchObject({ status: 200 });
    expect(simulators.pushes()).toHaveLength(1);
  });

  it("may be for an installation, a topic or a condition, in either spelling of the fields", async () => {
    const fid = "cHkUvHDRT0mVg6gvEbWFaR";
    expect(await send({ message: { fid, android: { collapseKey: "x", collapse_key: "x" } } })).toMatchObject({
      status: 200,
    });
    expect(await send({ message: { topic: "news" } })).toMatchObject({ status: 200 });
    expect(await send({ message: { condition: "'a' in topics" } })).toMatchObject({ status: 200 });
    expect(simulators.pushes().map(({ token }) => token)).toEqual([fid, "topic:news", "condition:'a' in topics"]);
  });

  it("is validated but not recorded with validate_only", async () => {
    expect(await send({ message, validate_only: true })).toMatchObject({
      status: 200,
      body: '{"name":"projects/herald-demo/messages/fake_message_id"}',
    });
    expect(simulators.pushes()).toEqual([]);
  });
});

it("lists every wrong field of a message, as google.rpc.BadRequest does", async () => {
  const answer = await send({ message: { token: "a", data: { n: 1 }, android: { ttl: 1, priority: "x" } } });
  expect(answer.status).toBe(400);
  const { error } = JSON.parse(answer.body);
  expect(error).toMatchObject({ code: 400, status: "INVALID_ARGUMENT" });
  expect(error.details).toMatchObject([
    { "@type": "type.googleapis.com/google.firebase.fcm.v1.FcmError", errorCode: "INVALID_ARGUMENT" },
    { "@type": "type.googleapis.com/google.rpc.BadRequest", fieldViolations: { length: 3 } },
  ]);
  expect(simulators.pushes()).toMatchObject([
    { status: 400, reason: "INVALID_ARGUMENT", problem: expect.stringContaining("message.android.ttl") },
  ]);
});

describe("a wrong request", () => {
  const wrong: [string, Partial<HttpParts>, number, string][] = [
    ["no token", { headers: { authorization: undefined } }, 401, "UNAUTHENTICATED"],
    ["an unknown token", { headers: { authorization: "Bearer ya29.x" } }, 401, "UNAUTHENTICATED"],
    ["another scheme", { headers: { authorization: "key=abc" } }, 401, "UNAUTHENTICATED"],
    ["another project", { path: "/v1/projects/other/messages:send" }, 403, "PERMISSION_DENIED"],
    ["another path", { path: "/v1/projects/herald-demo/messages:sendAll" }, 404, "NOT_FOUND"],
    ["a form", { headers: { "content-type": "text/plain" } }, 400, "INVALID_ARGUMENT"],
  ];
  it.each(wrong)("%s", async (_name, parts, status, google) => {
    const answer = await send(undefined, parts);
    expect(answer.status).toBe(status);
    expect(JSON.parse(answer.body).error).toMatchObject({ code: status, status: google });
  });

  it("with an expired token is refused with ACCESS_TOKEN_EXPIRED", async () => {
    const before = now;
    now += 3_600_000;
    const { status, body } = await send();
    now = before;
    expect([status, JSON.parse(body).error.details[0].reason]).toEqual([401, "ACCESS_TOKEN_EXPIRED"]);
  });
});

describe("a scripted answer", () => {
  const known: [number, string, string][] = [
    [400, "INVALID_ARGUMENT", "INVALID_ARGUMENT"],
    [401, "UNAUTHENTICATED", "THIRD_PARTY_AUTH_ERROR"],
    [403, "PERMISSION_DENIED", "SENDER_ID_MISMATCH"],
    [404, "NOT_FOUND", "UNREGISTERED"],
    [429, "RESOURCE_EXHAUSTED", "QUOTA_EXCEEDED"],
    [500, "INTERNAL", "INTERNAL"],
    [503, "UNAVAILABLE", "UNAVAILABLE"],
  ];
  it.each(known)("%i is %s with FCM's %s", async (status, google, errorCode) => {
    simulators.script([{ provider: "fcm", status }]);
    const answer = await send();
    expect(answer.status).toBe(status);
    expect(JSON.parse(answer.body).error).toMatchObject({ code: status, status: google, details: [{ errorCode }] });
    expect(simulators.pushes()).toMatchObject([{ status, reason: errorCode, token: message.token }]);
  });

  it("may be Google's own, without a word of FCM, and have headers", async () => {
    simulators.script([
      { provider: "fcm", status: 429, reason: "RESOURCE_EXHAUSTED", headers: { "retry-after": "60" } },
    ]);
    const answer = await send();
    expect(answer.headers["retry-after"]).toBe("60");
    expect(JSON.parse(answer.body).error).not.toHaveProperty("details");
  });

  it("can break the connection of either HTTP version", async () => {
    simulators.script([{ provider: "fcm", rst: "REFUSED_STREAM" }]);
    expect(await send()).toMatchObject({ status: 0 });
    await expect(callH1(simulators.fcm.url, simulators.ca, sendRequest())).rejects.toThrow();
    simulators.script([{ provider: "fcm", status: 200, closeSocket: true }]);
    await expect(callH1(simulators.fcm.url, simulators.ca, sendRequest())).rejects.toThrow();
    expect(simulators.pushes().map(({ broken }) => broken)).toEqual(["rst", "rst", "closed"]);
  });
});
