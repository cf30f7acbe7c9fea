import { createECDH } from "node:crypto";
import { expect, test } from "vitest";
import { ProvidersRecord } from "./records.ts";
import { VapidKeyId, VapidPublicKey, vapidKeyId } from "./vapid.ts";

const publicKey = () => createECDH("prime256v1").generateKeys("base64url");

test("a key has one id in every encoding, and no other key has it", () => {
  const key = publicKey();
  expect(vapidKeyId(`${key}=`)).toBe(vapidKeyId(key));
  expect(vapidKeyId(publicKey())).not.toBe(vapidKeyId(key));
  expect(VapidKeyId.parse(vapidKeyId(key))).toHaveLength(16);
});

test("ids never change: devices are stored with them", () => {
  const generator = "BGsX0fLhLEJH-Lzm5WOkQPJ3A32BLeszoPShOUXYmMKWT-NC4v4af5uO5-tKfA-eFivOM1drMV7Oy7ZAaDe_UfU";
  expect(vapidKeyId(generator)).toBe("698bea63dc44a344");
});

test.each([
  ["nothing", ""],
  ["a compressed point", `A${"A".repeat(43)}`],
  ["65 bytes that do not begin with 4", "A".repeat(87)],
  ["base64 of the other kind", `B${"/".repeat(86)}`],
])("%s is no public key", (_, text) => {
  expect(VapidPublicKey.safeParse(text).success).toBe(false);
});

test("a record of a single key, from an earlier version, still parses", () => {
  expect(ProvidersRecord.parse({ providers: ["apns", "webpush"] })).toEqual({ providers: ["apns", "webpush"] });
});
