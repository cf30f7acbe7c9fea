import { describe, expect, it } from "vitest";
import { createPushLog } from "./push-log.ts";
import type { Push, PushAttempt } from "./types.ts";

const attempt = (parts: Partial<PushAttempt> = {}): PushAttempt => ({
  provider: "apns",
  token: "a",
  headers: { ":path": "/3/device/a", "apns-topic": "org.example", authorization: "bearer secret" },
  payload: '{"aps":{}}',
  id: "id-1",
  status: 200,
  ...parts,
});

const all = () => createPushLog({ record: "all", keep: 1000 });

describe("a push is shown", () => {
  it("without pseudo-headers, its authorization masked, its payload as an object", () => {
    const log = all();
    log.add(attempt());
    const [push] = log.pushes();
    expect(push).toMatchObject({ seq: 1, provider: "apns", token: "a", id: "id-1", status: 200, payload: { aps: {} } });
    expect(push?.headers).toEqual({ "apns-topic": "org.example", authorization: "bearer ***" });
    expect(new Date(push?.at ?? "").toISOString()).toBe(push?.at);
  });

  it("with its payload as it came when that is no JSON, and untouched when it is no text", () => {
    const log = all();
    log.add(attempt({ payload: "hello" }));
    log.add(attempt({ payload: { title: "x" } }));
    expect([...log.pushes()].map(({ payload }) => payload)).toEqual(["hello", { title: "x" }]);
  });
});

describe("a filter", () => {
  it("takes provider, token and status", () => {
    const log = all();
    log.add(attempt());
    log.add(attempt({ token: "b", status: 410 }));
    log.add(attempt({ provider: "fcm", token: "c" }));
    const tokens = (filter: object) => [...log.pushes(filter)].map(({ token }) => token);
    expect(tokens({})).toEqual(["a", "b", "c"]);
    expect(tokens({ provider: "apns" })).toEqual(["a", "b"]);
    expect(tokens({ token: "b" })).toEqual(["b"]);
    expect(tokens({ status: 200 })).toEqual(["a", "c"]);
  });

  it("continues after a cursor, also across a clear", () => {
    const log = all();
    log.add(attempt({ token: "a" }));
    const cursor = log.cursor();
    log.add(attempt({ token: "b" }));
    expect([...log.pushes({ since: cursor })].map(({ token }) => token)).toEqual(["b"]);
    log.clear();
    log.add(attempt({ token: "c" }));
    expect([...log.pushes({ since: cursor })]).toMatchObject([{ token: "c", seq: 3 }]);
  });

  it("selects pushes since a time", () => {
    const log = all();
    log.add(attempt());
    const [push] = log.pushes();
    const at = new Date(push?.at ?? "");
    expect([...log.pushes({ since: at })]).toHaveLength(1);
    expect([...log.pushes({ since: new Date(at.getTime() + 1) })]).toHaveLength(0);
  });
});

it("counts by provider and answer", () => {
  const log = all();
  log.add(attempt());
  log.add(attempt());
  log.add(attempt({ status: 410 }));
  log.add(attempt({ status: null, broken: "hang" }));
  log.add(attempt({ provider: "fcm" }));
  expect(log.stats()).toMatchObject({
    apns: { total: 4, answers: { 200: 2, 410: 1, hang: 1 }, firstAt: expect.any(String), lastAt: expect.any(String) },
    fcm: { total: 1, answers: { 200: 1 } },
  });
  log.clear();
  expect(log.stats()).toEqual({});
});

it("keeps numbers only when told to count", () => {
  const log = createPushLog({ record: "count", keep: 1000 });
  log.add(attempt());
  expect([...log.pushes()]).toEqual([]);
  expect(log.stats()).toMatchObject({ apns: { total: 1 } });
});

it("drops the oldest past its limit, and says so", () => {
  const log = createPushLog({ record: "all", keep: 10 });
  for (let n = 0; n < 25; n += 1) log.add(attempt({ token: String(n) }));
  const tokens = [...log.pushes()].map(({ token }) => Number(token));
  expect(tokens.at(-1)).toBe(24);
  expect(tokens.length).toBeGreaterThanOrEqual(10);
  expect(tokens.length + log.dropped()).toBe(25);
});

it("tells its listeners of every push until they leave", () => {
  const log = all();
  const seen: Push[] = [];
  const leave = log.subscribe((push) => seen.push(push));
  log.add(attempt());
  leave();
  log.add(attempt());
  expect(seen.map(({ seq }) => seq)).toEqual([1]);
});
