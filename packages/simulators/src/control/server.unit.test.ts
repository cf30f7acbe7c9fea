import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type ApnsClient, connectApns, deviceToken, validPayload } from "../../test/apns-client.ts";
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

const call = async (method: string, path: string, body?: unknown) => {
  const response = await fetch(simulators.control.url + path, {
    method,
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  return { status: response.status, body: text === "" ? undefined : JSON.parse(text) };
};

describe("/pushes", () => {
  it("lists every push with what the device sees and how it was answered, oldest first", async () => {
    simulators.script([{ tokenPrefix: deviceToken(2), status: 410 }]);
    await client.send({ token: deviceToken(1) });
    await client.send({ token: deviceToken(2) });
    const { status, body } = await call("GET", "/pushes");
    expect(status).toBe(200);
    expect(body.data).toMatchObject([
      {
        provider: "apns",
        token: deviceToken(1),
        headers: { "apns-topic": "org.example.app", authorization: "bearer ***" },
        payload: JSON.parse(validPayload),
        at: expect.stringMatching(/^\d{4}-.*Z$/),
        status: 200,
        id: expect.any(String),
      },
      { token: deviceToken(2), status: 410, reason: "Unregistered" },
    ]);
    expect(body).toMatchObject({ next: body.data[1].seq, dropped: 0 });
  });

  it("is an empty list when nothing came, or nothing of that provider", async () => {
    expect((await call("GET", "/pushes")).body.data).toEqual([]);
    await client.send();
    expect((await call("GET", "/pushes?provider=fcm")).body.data).toEqual([]);
  });

  it("lists more than one piece of the stream", async () => {
    await Promise.all(Array.from({ length: 1201 }, (_, n) => client.send({ token: deviceToken(n) })));
    const { body } = await call("GET", "/pushes?provider=apns");
    expect(new Set(body.data.map(({ token }: { token: string }) => token)).size).toBe(1201);
  });

  it("filters by token, status, cursor and time", async () => {
    await client.send({ token: deviceToken(1) });
    const { next } = (await call("GET", "/pushes")).body;
    await client.send({ token: deviceToken(2) });
    const tokens = async (query: string) =>
      (await call("GET", `/pushes?${query}`)).body.data.map(({ token }: { token: string }) => token);
    expect(await tokens(`since=${next}`)).toEqual([deviceToken(2)]);
    expect(await tokens(`token=${deviceToken(1)}`)).toEqual([deviceToken(1)]);
    expect(await tokens("status=503")).toEqual([]);
    expect(await tokens("since=2020-01-01T00:00:00Z")).toEqual([deviceToken(1), deviceToken(2)]);
    expect(await tokens("since=2100-01-01T00:00:00%2B02:00")).toEqual([]);
  });

  it("refuses a query that it does not understand, every problem at once", async () => {
    const { status, body } = await call("GET", "/pushes?provider=gcm&since=yesterday&speed=1");
    expect(status).toBe(422);
    expect(body.errors).toHaveLength(3);
    expect(body.errors.join("\n")).toMatch(/provider: [\s\S]*since: [\s\S]*speed/);
  });

  it("is emptied by DELETE", async () => {
    await client.send();
    expect(await call("DELETE", "/pushes")).toEqual({ status: 204, body: undefined });
    expect((await call("GET", "/pushes")).body.data).toEqual([]);
    expect((await call("GET", "/stats")).body.data).toEqual({});
  });
});

describe("/script", () => {
  it("is put, shown with its counts, and deleted", async () => {
    const rules = [{ provider: "apns", times: 1, status: 503 }];
    expect(await call("PUT", "/script", rules)).toEqual({
      status: 200,
      body: { seed: 1, rules: [{ ...rules[0], used: 0 }] },
    });
    expect((await client.send()).status).toBe(503);
    expect((await call("GET", "/script")).body.rules).toEqual([{ ...rules[0], used: 1 }]);
    expect((await call("DELETE", "/script")).status).toBe(204);
    expect((await call("GET", "/script")).body.rules).toEqual([]);
  });

  it("may have a seed", async () => {
    expect(await call("PUT", "/script", { rules: [], seed: 7 })).toEqual({ status: 200, body: { seed: 7, rules: [] } });
  });

  it("is refused with every problem at once, and the previous one stays", async () => {
    await call("PUT", "/script", [{ status: 503 }]);
    const { status, body } = await call("PUT", "/script", [{ share: 2, status: 503 }, { speed: 1 }]);
    expect(status).toBe(422);
    expect(body.errors.join("\n")).toMatch(/rules\.0\.share: [\s\S]*rules\.1: /);
    expect((await client.send()).status).toBe(503);
  });

  it("is refused when it is not JSON", async () => {
    const response = await fetch(`${simulators.control.url}/script`, { method: "PUT", body: "[{" });
    expect(response.status).toBe(400);
    expect(await response.json()).toEqual({ errors: [expect.stringMatching(/^body: /)] });
  });
});

it("/stats counts answers and connections", async () => {
  simulators.script([{ times: 1, status: 429 }]);
  await client.send();
  await client.send();
  const { body } = await call("GET", "/stats");
  expect(body.data.apns).toMatchObject({ total: 2, answers: { 200: 1, 429: 1 } });
  expect(body.connections.apns.open).toBeGreaterThanOrEqual(1);
});

it("/info and /ca.pem contain the addresses and the certificate authority", async () => {
  const { body } = await call("GET", "/info");
  expect(body).toMatchObject({ apns: simulators.apns.url, control: simulators.control.url, ca: simulators.ca });
  expect(await (await fetch(`${simulators.control.url}/ca.pem`)).text()).toBe(simulators.ca);
});

it("answers 404 with the errors of the interface", async () => {
  expect(await call("GET", "/nothing")).toEqual({ status: 404, body: { errors: ["GET /nothing: route not found"] } });
});

describe("the page", () => {
  it("is one document that loads nothing from elsewhere", async () => {
    const response = await fetch(simulators.control.url);
    const html = await response.text();
    expect(response.headers.get("content-type")).toMatch(/^text\/html/);
    expect(html).toMatch(/^<!doctype html>/);
    expect(html).not.toMatch(/(?:src|href)="(?!data:)/);
    const nonce = /'nonce-([^']+)'/.exec(response.headers.get("content-security-policy") ?? "")?.[1];
    expect(html).toContain(`<script nonce="${nonce}">`);
  });

  it("gets pushes as events: the latest of the past, then each as it arrives", async () => {
    await client.send({ token: deviceToken(1) });
    const leave = new AbortController();
    const response = await fetch(`${simulators.control.url}/events`, { signal: leave.signal });
    expect(response.headers.get("content-type")).toMatch(/^text\/event-stream/);
    let text = "";
    const reading = (async () => {
      for await (const chunk of response.body ?? []) {
        text += new TextDecoder().decode(chunk);
        if (text.includes(deviceToken(2))) return;
      }
    })();
    await client.send({ token: deviceToken(2) });
    await reading;
    leave.abort();
    const events = [...text.matchAll(/^id: (\d+)\ndata: (.*)$/gm)].map(([, id, data]) => ({
      id: Number(id),
      push: JSON.parse(data ?? ""),
    }));
    expect(events.map(({ push }) => push.token)).toEqual([deviceToken(1), deviceToken(2)]);
    expect(events.every(({ id, push }) => id === push.seq)).toBe(true);

    const resumed = await fetch(`${simulators.control.url}/events`, {
      headers: { "Last-Event-ID": String(events[0]?.id) },
    });
    const reader = resumed.body?.getReader();
    const first = new TextDecoder().decode((await reader?.read())?.value);
    await reader?.cancel();
    expect(first).toContain(`id: ${events[1]?.id}\n`);
    expect(first).not.toContain(`id: ${events[0]?.id}\n`);
  });
});
