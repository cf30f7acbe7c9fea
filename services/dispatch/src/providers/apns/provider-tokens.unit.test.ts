import { generateKeyPairSync } from "node:crypto";
import { jwtVerify } from "jose";
import { expect, test } from "vitest";
import { createTokenCache } from "./client.ts";

const minuteMs = 60_000;

function setUp(start = Date.parse("2026-03-01T12:00:00Z")) {
  let time = start;
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const key = {
    key_id: "ABCDE12345",
    team_id: "TEAM123456",
    private_key: privateKey.export({ type: "pkcs8", format: "pem" }).toString(),
  };
  const tokens = createTokenCache(() => new Date(time));
  return { key, publicKey, tokens, pass: (ms: number) => (time += ms), at: () => time };
}

test("signs what Apple asks for", async () => {
  const { key, publicKey, tokens, at } = setUp();
  const header = await tokens(key).current();
  expect(header).toMatch(/^bearer /);
  const { payload, protectedHeader } = await jwtVerify(header.slice("bearer ".length), publicKey, {
    currentDate: new Date(at()),
  });
  expect(protectedHeader).toEqual({ alg: "ES256", kid: "ABCDE12345" });
  expect(payload).toEqual({ iss: "TEAM123456", iat: at() / 1_000 });
});

test("uses one token for at least 20 and at most 60 minutes, for every client of the key", async () => {
  const { key, tokens, pass } = setUp();
  const first = await tokens(key).current();
  const seen = new Set([first]);
  for (let minute = 0; minute < 49; minute++) {
    pass(minuteMs);
    seen.add(await tokens({ ...key }).current());
  }
  expect(seen.size).toBe(1);
  pass(minuteMs);
  expect(await tokens(key).current()).not.toBe(first);
});

test("signs once for all that ask at the same time", async () => {
  const { key, tokens } = setUp();
  const headers = await Promise.all(Array.from({ length: 100 }, () => tokens(key).current()));
  expect(new Set(headers).size).toBe(1);
});

test("keeps keys apart, also a different key under the same ids", async () => {
  const { key, tokens } = setUp();
  const other = setUp().key;
  const first = await tokens(key).current();
  expect(await tokens(other).current()).not.toBe(first);
  expect(await tokens({ ...key, key_id: "OTHER12345" }).current()).not.toBe(first);
  expect(await tokens(key).current()).toBe(first);
});

test("renews an expired token once for all callers, and not again for 20 minutes", async () => {
  const { key, tokens, pass } = setUp();
  const token = tokens(key);
  const stale = await token.current();
  pass(5 * minuteMs);
  const renewed = await Promise.all([token.renew(stale), token.renew(stale), token.renew(stale)]);
  expect(new Set(renewed).size).toBe(1);
  const [fresh] = renewed;
  expect(fresh).not.toBe(stale);
  expect(await token.current()).toBe(fresh);
  expect(await token.renew(stale)).toBe(fresh);
  expect(token.renew(fresh ?? "")).toBeUndefined();
  pass(20 * minuteMs);
  expect(await token.renew(fresh ?? "")).not.toBe(fresh);
});

test("does not keep a token from the future when the clock is set back", async () => {
  const { key, tokens, pass } = setUp();
  const token = tokens(key);
  const before = await token.current();
  pass(-30_000);
  expect(await token.current()).toBe(before);
  pass(-10 * minuteMs);
  expect(await token.current()).not.toBe(before);
});

test("replaces a token that Apple refuses, once within 20 minutes, unless it is newer than the refusal", async () => {
  const { key, tokens, pass, at } = setUp();
  const token = tokens(key);
  const refused = await token.current();
  const since = new Date(at());
  pass(5_000);
  token.replace(new Date(since.getTime() - 1));
  expect(await token.current()).toBe(refused);
  token.replace(since);
  const second = await token.current();
  expect(second).not.toBe(refused);
  token.replace(since);
  pass(minuteMs);
  token.replace(new Date(at()));
  expect(await token.current()).toBe(second);
  pass(20 * minuteMs);
  token.replace(new Date(at()));
  expect(await token.current()).not.toBe(second);
});
