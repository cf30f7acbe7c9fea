import { createECDH } from "node:crypto";
import { expect, it, test } from "vitest";
import { type KeyRing, newRing } from "./key-ring.ts";
import { checkWebPushSettings, publishedKeys, ringOf, webPushPublicView } from "./settings.ts";
import { newVapidKeys, publicKeyOf } from "./vapid-keys.ts";

const rules = { customEndpoints: false, now: new Date("2026-03-01T12:00:00Z") };
const subject = "mailto:ops@example.com";
const put = (input: unknown, previous?: KeyRing) => {
  const checked = checkWebPushSettings(input, rules, previous);
  if (!checked.ok) throw new Error(checked.problems.join("; "));
  return checked.settings;
};
const problems = (input: unknown) => {
  const checked = checkWebPushSettings(input, rules);
  return checked.ok ? [] : checked.problems;
};

test("makes a pair of keys where there is none, and keeps the one there is", () => {
  const first = put({ subject });
  expect(publicKeyOf(first.private_key)).toBe(first.public_key);
  expect(Buffer.from(first.public_key, "base64url")).toHaveLength(65);
  expect(put({ subject }).public_key).not.toBe(first.public_key);
  const again = put({ subject: "https://example.com/contact" }, first.ring);
  expect(again).toMatchObject({ public_key: first.public_key, private_key: first.private_key, ring: first.ring });
});

test("takes a pair that was made elsewhere, or its private half", () => {
  const keys = newVapidKeys();
  expect(put({ subject, ...keys })).toEqual({ subject, ...keys, ring: newRing(keys, rules.now) });
  expect(put({ subject, private_key: keys.private_key })).toMatchObject({ subject, ...keys });
});

test("another pair is the current one from now on, and the one before it goes on serving", () => {
  const [old, keys] = [put({ subject }), newVapidKeys()];
  const { ring, public_key } = put({ subject, ...keys }, old.ring);
  expect(public_key).toBe(keys.public_key);
  expect(ring).toMatchObject({
    current: keys,
    earlier: [{ private_key: old.private_key }],
    unnamed: old.ring?.unnamed,
  });
  expect(put({ subject, ...keys }, ring).ring).toEqual(ring);
});

test("what is wrong with the sum of all keys is a problem of the settings", () => {
  let ring: KeyRing | undefined;
  for (let at = 0; at < 10; at++) ring = put({ subject, ...newVapidKeys() }, ring).ring;
  const checked = checkWebPushSettings({ subject, ...newVapidKeys() }, rules, ring);
  expect(checked).toMatchObject({ ok: false, problems: [expect.stringMatching(/^key: the project has 10 keys/)] });
});

test("settings from before there were several keys have one, which gateways can read too", () => {
  const keys = newVapidKeys();
  const ring = ringOf({ subject, ...keys }, rules.now);
  expect(ring).toEqual(newRing(keys, rules.now));
  const [published] = publishedKeys({ subject, public_key: keys.public_key });
  expect(published).toEqual({ id: ring.current.id, publicKey: keys.public_key, status: "current" });
  expect(publishedKeys({})).toEqual([]);
});

test("a pair that an older version put counts, and not the ring beside it", () => {
  const [keys, old] = [newVapidKeys(), put({ subject })];
  expect(ringOf({ ...old, ...keys }, rules.now).current).toMatchObject(keys);
});

it.each([
  ["no subject", {}, [/^subject: /]],
  ["a subject that is no address", { subject: "ops" }, [/^subject: must be a mailto: or https: URL/]],
  ["a private key that is none", { subject, private_key: "x" }, [/^private_key: must be a VAPID private key/]],
  [
    "a private key of zero",
    { subject, private_key: Buffer.alloc(32).toString("base64url") },
    [/^private_key: must be/],
  ],
  [
    "a public key alone",
    { subject, public_key: newVapidKeys().public_key },
    [/^private_key: is required with public_key/],
  ],
  [
    "keys of two pairs",
    { subject, ...newVapidKeys(), public_key: newVapidKeys().public_key },
    [/^public_key: does not belong/],
  ],
  ["an endpoint", { subject, endpoint: "https://localhost:1" }, [/^endpoint: is not allowed here/]],
  ["a typo", { subject, privatekey: "x" }, [/^privatekey: is not known/]],
])("says what is wrong with %s", (_, input, messages) => {
  expect(problems(input)).toEqual(messages.map((message) => expect.stringMatching(message)));
});

test("shows the public key, which browsers subscribe with, and never the other", () => {
  const settings = put({ subject });
  const { public_key, ring } = settings;
  const at = rules.now.toISOString();
  expect(webPushPublicView(settings)).toEqual({
    subject,
    public_key,
    keys: [{ id: ring?.current.id, public_key, status: "current", created_at: at, current_since: at }],
  });
  expect(JSON.stringify(webPushPublicView(settings))).not.toContain(settings.private_key);
});

test("pairs are of P-256", () => {
  const { public_key, private_key } = newVapidKeys();
  const ecdh = createECDH("prime256v1");
  ecdh.setPrivateKey(private_key, "base64url");
  expect(ecdh.getPublicKey("base64url")).toBe(public_key);
});
