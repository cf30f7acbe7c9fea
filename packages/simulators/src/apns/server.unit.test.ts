import { generateKeyPairSync } from "node:crypto";
import { once } from "node:events";
import { connect } from "node:http2";
import { connect as connectTls } from "node:tls";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import {
  type ApnsClient,
  connectApns,
  deviceToken,
  providerToken,
  type RequestParts,
  signedProviderToken,
  validHeaders,
  validPayload,
} from "../../test/apns-client.ts";
import { createIdentity } from "../certificates.ts";
import { startSimulators } from "../start-simulators.ts";
import type { Simulators } from "../types.ts";

let simulators: Simulators;
let client: ApnsClient;

beforeAll(async () => {
  simulators = await startSimulators();
});
afterAll(() => simulators.stop());
beforeEach(async () => {
  simulators.clear();
  client = await connectApns(simulators);
});
afterEach(() => client.close());

const payloadOf = (bytes: number) => {
  const frame = JSON.stringify({ aps: {}, fill: "" });
  return JSON.stringify({ aps: {}, fill: "x".repeat(bytes - frame.length) });
};

describe("a correct request", () => {
  it("is answered 200 with its id and an empty body, and recorded", async () => {
    const answer = await client.send({ token: deviceToken(7), headers: { "apns-collapse-id": "news" } });
    expect(answer).toMatchObject({ status: 200, body: "" });
    expect(answer.headers["apns-id"]).toBe(validHeaders()["apns-id"]);
    expect(answer.headers["apns-unique-id"]).toMatch(/^[0-9a-f-]{36}$/);

    const [push] = simulators.pushes();
    expect(push).toMatchObject({
      provider: "apns",
      token: deviceToken(7),
      payload: JSON.parse(validPayload),
      status: 200,
      id: validHeaders()["apns-id"],
    });
    expect(push?.headers).toEqual({ ...validHeaders(), authorization: "bearer ***", "apns-collapse-id": "news" });
  });

  const accepted: [string, RequestParts][] = [
    ["4,096 bytes", { payload: payloadOf(4096) }],
    [
      "5,120 bytes of VoIP",
      { payload: payloadOf(5120), headers: { "apns-topic": "org.example.app.voip", "apns-push-type": "voip" } },
    ],
    ["a collapse id of 64 bytes", { headers: { "apns-collapse-id": "x".repeat(64) } }],
    ["priority 1", { headers: { "apns-priority": "1" } }],
    ["a background push with priority 5", { headers: { "apns-priority": "5", "apns-push-type": "background" } }],
    ["a token of 100 bytes", { token: "ab".repeat(100) }],
    ["an upper-case token", { token: "AB".repeat(32) }],
    ["MDM without aps", { payload: '{"mdm":"magic"}', headers: { "apns-push-type": "mdm" } }],
  ];
  it.each(accepted)("may have %s", async (_name, parts) => {
    expect(await client.send(parts)).toMatchObject({ status: 200 });
  });
});

describe("a wrong request", () => {
  const header = (name: string, value: string | undefined): RequestParts => ({ headers: { [name]: value } });
  const wrong: [string, RequestParts, number, string][] = [
    ["GET", { method: "GET", payload: "" }, 405, "MethodNotAllowed"],
    ["another path", { path: "/3/devices/x" }, 404, "BadPath"],
    ["a path with a query", { path: `/3/device/${deviceToken(1)}?x=1` }, 404, "BadPath"],
    ["no token", { token: "" }, 400, "MissingDeviceToken"],
    ["a token that is not hexadecimal", { token: "z".repeat(64) }, 400, "BadDeviceToken"],
    ["a short token", { token: "ab".repeat(31) }, 400, "BadDeviceToken"],
    ["half a byte too many", { token: `${deviceToken(1)}a` }, 400, "BadDeviceToken"],
    ["no topic", header("apns-topic", undefined), 400, "MissingTopic"],
    ["a topic that is no bundle id", header("apns-topic", "org example"), 400, "BadTopic"],
    ["a topic without the ending of its push type", header("apns-push-type", "voip"), 400, "BadTopic"],
    ["no push type", header("apns-push-type", undefined), 400, "InvalidPushType"],
    ["an unknown push type", header("apns-push-type", "shout"), 400, "InvalidPushType"],
    ["a push type that objects inherit", header("apns-push-type", "constructor"), 400, "InvalidPushType"],
    ["no priority", header("apns-priority", undefined), 400, "BadPriority"],
    ["priority 7", header("apns-priority", "7"), 400, "BadPriority"],
    ["a background push with priority 10", header("apns-push-type", "background"), 400, "BadPriority"],
    ["no expiration", header("apns-expiration", undefined), 400, "BadExpirationDate"],
    ["an expiration in words", header("apns-expiration", "tomorrow"), 400, "BadExpirationDate"],
    ["an expiration in milliseconds", header("apns-expiration", "1763712000000"), 400, "BadExpirationDate"],
    ["no id", header("apns-id", undefined), 400, "BadMessageId"],
    ["an id that is no UUID", header("apns-id", "42"), 400, "BadMessageId"],
    ["a header twice", { headers: { "apns-priority": ["10", "10"] } }, 400, "DuplicateHeaders"],
    ["a collapse id of 65 bytes", header("apns-collapse-id", "x".repeat(65)), 400, "BadCollapseId"],
    ["an empty payload", { payload: "" }, 400, "PayloadEmpty"],
    ["a payload that is not JSON", { payload: "hello" }, 400, "PayloadEmpty"],
    ["a payload with a repeated name", { payload: '{"aps":{},"token":"a","token":"b"}' }, 400, "PayloadEmpty"],
    ["a payload that is a list", { payload: "[]" }, 400, "PayloadEmpty"],
    ["a payload without aps", { payload: "{}" }, 400, "PayloadEmpty"],
    ["4,097 bytes", { payload: payloadOf(4097) }, 413, "PayloadTooLarge"],
    ["a megabyte", { payload: payloadOf(1_000_000) }, 413, "PayloadTooLarge"],
    ["no authorization", header("authorization", undefined), 403, "MissingProviderToken"],
    ["another scheme", header("authorization", "basic eA=="), 403, "InvalidProviderToken"],
    ["a token that is no JWT", header("authorization", "bearer abc"), 403, "InvalidProviderToken"],
    [
      "another algorithm",
      header("authorization", `bearer ${providerToken({ alg: "RS256" })}`),
      403,
      "InvalidProviderToken",
    ],
    ["no key id", header("authorization", `bearer ${providerToken({ kid: "" })}`), 403, "InvalidProviderToken"],
    ["no team", header("authorization", `bearer ${providerToken({ iss: "" })}`), 403, "InvalidProviderToken"],
    [
      "a token from the future",
      header("authorization", `bearer ${providerToken({ iat: Math.floor(Date.now() / 1000) + 600 })}`),
      403,
      "InvalidProviderToken",
    ],
    [
      "a token of 61 minutes",
      header("authorization", `bearer ${providerToken({ iat: Math.floor(Date.now() / 1000) - 3660 })}`),
      403,
      "ExpiredProviderToken",
    ],
  ];
  it.each(wrong)("%s", async (_name, parts, status, reason) => {
    const answer = await client.send(parts);
    expect({ status: answer.status, body: JSON.parse(answer.body) }).toEqual({ status, body: { reason } });
    expect(answer.headers["apns-id"]).toBeTruthy();
    const [push] = simulators.pushes();
    expect(push).toMatchObject({ status, reason });
    expect(push?.problem).toBeTruthy();
  });
});

describe("the provider token", () => {
  const pair = () =>
    generateKeyPairSync("ec", {
      namedCurve: "P-256",
      publicKeyEncoding: { type: "spki", format: "pem" },
      privateKeyEncoding: { type: "pkcs8", format: "pem" },
    });
  const bearer = (token: string) => ({ headers: { authorization: `bearer ${token}` } });

  it("is verified for a team with a known key, and checked by its form for any other", async () => {
    const [mine, other] = [pair(), pair()];
    const strict = await startSimulators({
      apns: { keys: [{ keyId: "KEYONE", teamId: "TEAMONE", publicKey: mine.publicKey }] },
    });
    const connection = await connectApns(strict);
    const send = async (token: string) => {
      const { status, body } = await connection.send(bearer(token));
      return status === 200 ? 200 : JSON.parse(body).reason;
    };
    expect(await send(await signedProviderToken(other.privateKey, "KEYONE", "TEAMONE"))).toBe("InvalidProviderToken");
    expect(await send(await signedProviderToken(mine.privateKey, "KEYTWO", "TEAMONE"))).toBe("InvalidProviderToken");
    expect(await send(await signedProviderToken(mine.privateKey, "KEYONE", "TEAMTWO"))).toBe("InvalidProviderToken");
    const stranger = await connectApns(strict);
    const unknown = await signedProviderToken(other.privateKey, "KEYTWO", "TEAMTWO");
    expect((await stranger.send(bearer(unknown))).status).toBe(200);
    stranger.close();
    expect(await send(await signedProviderToken(mine.privateKey, "KEYONE", "TEAMONE"))).toBe(200);
    strict.apns.setKeys([{ keyId: "KEYONE", teamId: "TEAMONE", publicKey: other.publicKey }]);
    const next = await connectApns(strict);
    expect(await next.send(bearer(await signedProviderToken(mine.privateKey, "KEYONE", "TEAMONE")))).toMatchObject({
      status: 403,
    });
    connection.close();
    next.close();
    await strict.stop();
  });

  it("binds its connection to one team and one key", async () => {
    expect(await client.send()).toMatchObject({ status: 200 });
    expect((await client.send(bearer(providerToken({ iss: "OTHERTEAM1" })))).body).toBe('{"reason":"Forbidden"}');
    expect((await client.send(bearer(providerToken({ kid: "OTHERKEY12" })))).body).toBe(
      '{"reason":"UnrelatedKeyIdInToken"}',
    );
    expect(await client.send()).toMatchObject({ status: 200 });
  });

  it("ends after an hour on the simulator's clock, and may be new every 20 minutes", async () => {
    let now = Date.parse("2026-01-01T00:00:00Z");
    const timed = await startSimulators({ apns: { limitTokenUpdates: true, now: () => now } });
    const connection = await connectApns(timed);
    const token = () => providerToken({ iat: now / 1000 });
    const send = async (jwt: string) => {
      const { status, body } = await connection.send(bearer(jwt));
      return status === 200 ? 200 : JSON.parse(body).reason;
    };
    const first = token();
    expect(await send(first)).toBe(200);
    now += 19 * 60_000;
    expect(await send(token())).toBe("TooManyProviderTokenUpdates");
    expect(await send(first)).toBe(200);
    now += 60_000;
    expect(await send(token())).toBe(200);
    expect(await send(first)).toBe(200);
    now += 41 * 60_000;
    expect(await send(first)).toBe("ExpiredProviderToken");
    connection.close();
    await timed.stop();
  });
});

describe("a client certificate", () => {
  it("authenticates instead of a token", async () => {
    const { certificate, key } = await createIdentity("client.example");
    const connection = await connectApns(simulators, { cert: certificate, key });
    expect(await connection.send({ headers: { authorization: undefined } })).toMatchObject({ status: 200 });
    connection.close();
  });
});

describe("the connection", () => {
  it("is verified by the authority that is handed out, and refused without it", async () => {
    const session = connect(simulators.apns.url);
    const error = await new Promise<NodeJS.ErrnoException>((resolve) => session.once("error", resolve));
    expect(error.code).toMatch(/UNABLE_TO_VERIFY_LEAF_SIGNATURE|SELF_SIGNED/);
    session.destroy();
  });

  it("is ended with an error when its frames are wrong, and harms no other stream", async () => {
    const { port } = new URL(simulators.apns.url);
    const socket = connectTls({ host: "127.0.0.1", port: Number(port), ca: simulators.ca, ALPNProtocols: ["h2"] });
    const received: Buffer[] = [];
    socket.on("data", (chunk: Buffer) => received.push(chunk));
    socket.on("error", () => {});
    const settings = Buffer.from([0, 0, 0, 4, 0, 0, 0, 0, 0]);
    const dataOnStreamZero = Buffer.from([0, 0, 1, 0, 0, 0, 0, 0, 0, 0x78]);
    socket.write(Buffer.concat([Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), settings, dataOnStreamZero]));
    await once(socket, "close");
    // GOAWAY is frame type 7; its last four bytes before the debug data are the code, 1 for PROTOCOL_ERROR.
    const goaway = Buffer.from([7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    expect(Buffer.concat(received).includes(goaway)).toBe(true);
    expect(await client.send()).toMatchObject({ status: 200 });
  });

  it("carries many streams at a time", async () => {
    const answers = await Promise.all(Array.from({ length: 300 }, (_, n) => client.send({ token: deviceToken(n) })));
    expect(answers.every(({ status }) => status === 200)).toBe(true);
    expect(new Set(simulators.pushes().map(({ token }) => token)).size).toBe(300);
  });
});
