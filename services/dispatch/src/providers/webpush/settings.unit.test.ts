import { createECDH } from "node:crypto";
import { expect, it, test } from "vitest";
import { problemsOf } from "../../../test/settings-fixture.ts";
import {
  checkWebPushSettings,
  type KeyRing,
  newRing,
  newVapidKeys,
  publicKeyOf,
  publishedKeys,
  publishedSite,
  webPushPublicView,
} from "./settings.ts";

const rules = { customEndpoints: false, now: new Date("2026-03-01T12:00:00Z") };
const subject = "mailto:ops@example.com";
const put = (input: unknown, previous?: KeyRing) => checkWebPushSettings(input, rules, previous);
const problems = (input: unknown) => problemsOf(() => put(input));

test("creates a key pair if there is none, and keeps an existing one", () => {
  const first = put({ subject });
  const { public_key, private_key } = first.ring.current;
  expect(publicKeyOf(private_key)).toBe(public_key);
  expect(Buffer.from(public_key, "base64url")).toHaveLength(65);
  expect(put({ subject }).ring.current.public_key).not.toBe(public_key);
  const again = put({ subject: "https://example.com/contact" }, first.ring);
  expect(again).toEqual({ subject: "https://example.com/contact", ring: first.ring });
});

test("accepts a pair that was made elsewhere, or its private key alone", () => {
  const keys = newVapidKeys();
  expect(put({ subject, ...keys })).toEqual({ subject, ring: newRing(keys, rules.now) });
  expect(put({ subject, private_key: keys.private_key })).toMatchObject({ subject, ring: { current: keys } });
});

test("a new pair becomes the current one, and the previous one keeps working", () => {
  const [old, keys] = [put({ subject }), newVapidKeys()];
  const { ring } = put({ subject, ...keys }, old.ring);
  expect(ring).toMatchObject({
    current: keys,
    earlier: [{ private_key: old.ring.current.private_key }],
    unnamed: old.ring.unnamed,
  });
  expect(put({ subject, ...keys }, ring).ring).toEqual(ring);
});

test("too many keys are a problem of the settings", () => {
  let ring: KeyRing | undefined;
  for (let at = 0; at < 10; at++) ring = put({ subject, ...newVapidKeys() }, ring).ring;
  expect(problemsOf(() => put({ subject, ...newVapidKeys() }, ring))).toEqual([
    expect.stringMatching(/^key: the project has 10 keys/),
  ]);
});

test("a stored view names the keys that browsers may subscribe with", () => {
  const settings = put({ subject });
  const { id, public_key: publicKey } = settings.ring.current;
  expect(publishedKeys(webPushPublicView(settings))).toEqual([{ id, publicKey, status: "current" }]);
});

test("a site is an origin, which is shown and published", () => {
  const settings = put({ subject, site: "https://shop.example.com" });
  const view = webPushPublicView(settings);
  expect(view).toMatchObject({ site: "https://shop.example.com" });
  expect(publishedSite(view)).toBe("https://shop.example.com");
  expect(publishedSite(webPushPublicView(put({ subject })))).toBeUndefined();
  expect(put({ subject, site: "https://shop.example.com:8443" })).toHaveProperty("site");
});

test.each([
  "https://shop.example.com/",
  "https://shop.example.com/app",
  "http://shop.example.com",
  "https://me@shop.example.com",
  "https://Shop.example.com",
  "https://shop.example.com:443",
  "shop.example.com",
  "https://",
  `https://${"x".repeat(250)}`,
])("the site %j is refused", (site) => {
  expect(problems({ subject, site })).toEqual([expect.stringMatching(/^site: must be (an origin|at most)/)]);
});

it.each([
  ["no subject", {}, [/^subject: /]],
  ["a subject that is no address", { subject: "ops" }, [/^subject: must be one address/]],
  ["a subject that Apple refuses", { subject: "mailto:push@localhost" }, [/^subject: must be one address/]],
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
  const { id, public_key, private_key } = settings.ring.current;
  const at = rules.now.toISOString();
  expect(webPushPublicView(settings)).toEqual({
    subject,
    public_key,
    keys: [{ id, public_key, status: "current", created_at: at, current_since: at }],
  });
  expect(JSON.stringify(webPushPublicView(settings))).not.toContain(private_key);
});

test("pairs are of P-256", () => {
  const { public_key, private_key } = newVapidKeys();
  const ecdh = createECDH("prime256v1");
  ecdh.setPrivateKey(private_key, "base64url");
  expect(ecdh.getPublicKey("base64url")).toBe(public_key);
});
