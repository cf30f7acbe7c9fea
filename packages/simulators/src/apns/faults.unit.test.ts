import { once } from "node:events";
import { constants } from "node:http2";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { type ApnsClient, connectApns, deviceToken } from "../../test/apns-client.ts";
import { startSimulators } from "../start-simulators.ts";
import type { Simulators } from "../types.ts";

let simulators: Simulators;
let clients: ApnsClient[];

beforeAll(async () => {
  simulators = await startSimulators();
});
afterAll(() => simulators.stop());
beforeEach(() => {
  simulators.clear();
  clients = [];
});
afterEach(() => {
  for (const client of clients) client.close();
});

const connected = async () => {
  const client = await connectApns(simulators);
  clients.push(client);
  return client;
};

describe("a scripted answer", () => {
  it("is Apple's, with the reason that is usual for its status", async () => {
    const client = await connected();
    const usual = {
      400: "BadDeviceToken",
      403: "InvalidProviderToken",
      404: "BadPath",
      405: "MethodNotAllowed",
      413: "PayloadTooLarge",
      429: "TooManyRequests",
      500: "InternalServerError",
      503: "ServiceUnavailable",
    };
    for (const [status, reason] of Object.entries(usual)) {
      simulators.script([{ provider: "apns", status: Number(status) }]);
      const answer = await client.send();
      expect([answer.status, JSON.parse(answer.body)]).toEqual([Number(status), { reason }]);
    }
  });

  it("has a timestamp with 410: the given one, or now", async () => {
    const client = await connected();
    simulators.script([
      { provider: "apns", tokenPrefix: "aa", status: 410, timestamp: 1_700_000_000_123 },
      { provider: "apns", status: 410, reason: "ExpiredToken" },
    ]);
    expect(JSON.parse((await client.send({ token: "aa".repeat(32) })).body)).toEqual({
      reason: "Unregistered",
      timestamp: 1_700_000_000_123,
    });
    const before = Date.now();
    const { reason, timestamp } = JSON.parse((await client.send()).body);
    expect(reason).toBe("ExpiredToken");
    expect(timestamp).toBeGreaterThanOrEqual(before);
    expect(simulators.pushes().map((push) => push.status)).toEqual([410, 410]);
  });

  it("has the headers and the raw body of the rule", async () => {
    const client = await connected();
    simulators.script([{ provider: "apns", status: 429, headers: { "retry-after": "30" }, body: "<html>" }]);
    const answer = await client.send();
    expect(answer).toMatchObject({ status: 429, body: "<html>" });
    expect(answer.headers["retry-after"]).toBe("30");
  });

  it("does not replace the error of a wrong request", async () => {
    const client = await connected();
    simulators.script([{ status: 503 }]);
    expect(await client.send({ headers: { "apns-topic": undefined } })).toMatchObject({ status: 400 });
    expect(await client.send()).toMatchObject({ status: 503 });
  });

  it("comes after its delay, and keeps no other waiting", async () => {
    const client = await connected();
    simulators.script([{ tokenPrefix: "aa", delayMs: 50 }]);
    const order: string[] = [];
    await Promise.all([
      client.send({ token: "aa".repeat(32) }).then(({ status }) => order.push(`slow ${status}`)),
      client.send({ token: "bb".repeat(32) }).then(({ status }) => order.push(`fast ${status}`)),
    ]);
    expect(order).toEqual(["fast 200", "slow 200"]);
  });
});

describe("no answer", () => {
  it("hangs for ever, while others are answered", async () => {
    const client = await connected();
    simulators.script([{ tokenPrefix: "aa", hang: true }]);
    const stream = client.open({ token: "aa".repeat(32) });
    let answered = false;
    stream.on("response", () => {
      answered = true;
    });
    await vi.waitFor(() => expect(simulators.pushes()).toMatchObject([{ status: null, broken: "hang" }]), {
      timeout: 20_000,
    });
    expect(await client.send()).toMatchObject({ status: 200 });
    expect([answered, stream.closed]).toEqual([false, false]);
  });

  it("resets the stream with the code of the rule", async () => {
    const client = await connected();
    simulators.script([
      { times: 1, rst: "REFUSED_STREAM" },
      { times: 1, rst: 2 },
    ]);
    expect(await client.send()).toMatchObject({ status: 0, rst: constants.NGHTTP2_REFUSED_STREAM });
    expect(await client.send()).toMatchObject({ status: 0, rst: constants.NGHTTP2_INTERNAL_ERROR });
    expect(await client.send()).toMatchObject({ status: 200, rst: 0 });
    expect(simulators.pushes()).toMatchObject([
      { status: null, broken: "rst" },
      { status: null, broken: "rst" },
      { status: 200 },
    ]);
  });

  it("resets an answer in its middle", async () => {
    const client = await connected();
    simulators.script([{ status: 429, body: "0123456789", rst: "INTERNAL_ERROR" }]);
    // The client may or may not return the half that arrived.
    const answer = await client.send();
    expect(answer).toMatchObject({ status: 429, rst: constants.NGHTTP2_INTERNAL_ERROR });
    expect(answer.body.length).toBeLessThan(10);
  });

  it("drops the socket without a GOAWAY", async () => {
    const client = await connected();
    simulators.script([{ closeSocket: true }]);
    const closed = once(client.session, "close");
    expect(await client.send()).toMatchObject({ status: 0 });
    await closed;
    expect(client.goaways).toEqual([]);
    expect(simulators.pushes()).toMatchObject([{ status: null, broken: "closed" }]);
  });

  it("drops the socket in the middle of an answer", async () => {
    const client = await connected();
    simulators.script([{ status: 500, body: "0123456789", closeSocket: true }]);
    const closed = once(client.session, "close");
    const answer = await client.send();
    expect(answer.status).toBe(500);
    expect(answer.body.length).toBeLessThan(10);
    await closed;
  });
});

describe("GOAWAY", () => {
  it("ends each connection after a number of streams: earlier ones are answered, later ones are not processed", async () => {
    simulators.script([{ provider: "apns", goaway: 50, reason: "Shutdown" }]);
    let waiting = Array.from({ length: 120 }, (_, n) => deviceToken(n));
    const answered: number[] = [];
    while (waiting.length > 0) {
      const client = await connected();
      const closed = once(client.session, "close");
      const full = waiting.length >= 50;
      const results = await Promise.all(
        waiting.map(async (token) => ({ token, answer: await client.send({ token }) })),
      );
      const refused = results.filter(({ answer }) => answer.status === 0);
      answered.push(results.length - refused.length);
      expect(refused.every(({ answer }) => answer.rst === constants.NGHTTP2_REFUSED_STREAM)).toBe(true);
      if (full) {
        await closed;
        // A client's stream ids are odd, so the fiftieth is 99.
        expect(client.goaways[0]).toEqual({ code: 0, last: 99, data: '{"reason":"Shutdown"}' });
      }
      waiting = refused.map(({ token }) => token);
    }
    expect(answered).toEqual([50, 50, 20]);
    const tokens = simulators.pushes().map(({ token }) => token);
    expect(tokens).toHaveLength(120);
    expect(new Set(tokens).size).toBe(120);
  });

  it("waits for answers that are delayed", async () => {
    const client = await connected();
    simulators.script([{ provider: "apns", goaway: 2, delayMs: 40 }]);
    const closed = once(client.session, "close");
    const answers = await Promise.all([client.send(), client.send(), client.send()]);
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 0]);
    await closed;
  });

  it("comes as often as the rule says", async () => {
    simulators.script([{ provider: "apns", goaway: 1, times: 1 }]);
    const first = await connected();
    const closed = once(first.session, "close");
    expect(await first.send()).toMatchObject({ status: 200 });
    await closed;
    const second = await connected();
    expect([(await second.send()).status, (await second.send()).status]).toEqual([200, 200]);
  });
});

describe("one-stream start", () => {
  const streams = (client: ApnsClient) => client.session.remoteSettings.maxConcurrentStreams;

  it("allows one stream until the first authenticated request", async () => {
    simulators.script([{ provider: "apns", oneStreamStart: true }]);
    const client = await connected();
    expect(streams(client)).toBe(1);
    expect(await client.send({ headers: { authorization: undefined } })).toMatchObject({ status: 403 });
    expect(streams(client)).toBe(1);
    expect(await client.send()).toMatchObject({ status: 200 });
    await vi.waitFor(() => expect(streams(client)).toBe(1000), { timeout: 20_000 });
    const answers = await Promise.all([1, 2, 3, 4].map((n) => client.send({ token: deviceToken(n) })));
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
  });

  it("ends with its script", async () => {
    simulators.script([{ oneStreamStart: true }]);
    simulators.script([]);
    expect(streams(await connected())).toBe(1000);
  });
});
