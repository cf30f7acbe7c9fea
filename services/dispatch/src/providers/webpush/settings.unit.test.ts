import { createECDH } from "node:crypto";
import { expect, it, test } from "vitest";
import { checkWebPushSettings, webPushPublicView } from "./settings.ts";
import { newVapidKeys, publicKeyOf } from "./vapid-keys.ts";

const rules = { customEndpoints: false, now: new Date("2026-03-01T12:00:00Z") };
const subject = "mailto:ops@example.com";
const put = (input: unknown, previous?: ReturnType<typeof newVapidKeys>) => {
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
  const again = put({ subject: "https://example.com/contact" }, first);
  expect(again).toMatchObject({ public_key: first.public_key, private_key: first.private_key });
});

test("takes a pair that was made elsewhere, or its private half", () => {
  const keys = newVapidKeys();
  expect(put({ subject, ...keys }, newVapidKeys())).toEqual({ subject, ...keys });
  expect(put({ subject, private_key: keys.private_key })).toEqual({ subject, ...keys });
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
  expect(webPushPublicView(settings)).toEqual({ subject, public_key: settings.public_key });
});

test("pairs are of P-256", () => {
  const { public_key, private_key } = newVapidKeys();
  const ecdh = createECDH("prime256v1");
  ecdh.setPrivateKey(private_key, "base64url");
  expect(ecdh.getPublicKey("base64url")).toBe(public_key);
});
