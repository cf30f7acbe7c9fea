import { createECDH } from "node:crypto";
import { expect, test } from "vitest";
import { ProvidersRecord } from "./records.ts";
import { VapidKeyId, VapidPublicKey, VapidSubject, vapidKeyId } from "./vapid.ts";

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

test.each([
  ...["mailto:push@example.com", "mailto:first.last+push@mail.shop.co.uk", "mailto:o'neil@xn--e1afmkfd.xn--p1ai"],
  ...["https://example.com", "https://shop.example.org:8443/contact?topic=push#form", "https://host.tailnet.ts.net"],
])("the subject %s is accepted", (subject) => expect(VapidSubject.parse(subject)).toBe(subject));

test.each([
  ...["mailto:push@localhost", "mailto:ops@herald.invalid", "mailto:ops@mac.local", "mailto:ops@a.LOCALHOST"],
  ...["mailto:ops@herald.test", "mailto:ops@shop.example", "mailto:ops@push.internal", "https://localhost"],
  ...["mailto:root@localhost.localdomain", "mailto:root@server.lan", "https://herald.home.arpa"],
  ...["https://localhost:8443/contact", "https://localhost./", "https://herald.invalid", "https://intranet/contact"],
  ...["https://127.0.0.1", "https://[::1]/", "https://me:secret@example.com", "http://example.com", "https://"],
  ...["mailto:mailto:ops@example.com", "mailto: ops@example.com", "mailto:ops@example.com ", " mailto:ops@example.com"],
  ...["mailto:<ops@example.com>", "mailto: <ops@example.com>", "mailto:Ops <ops@example.com>", "mailto:ops@[10.0.0.1]"],
  ...["mailto:a@example.com,b@example.com", "mailto:a@example.com;b@example.com", "mailto:ops@example.com?subject=Hi"],
  ...[
    "mailto:ops",
    "mailto:ops@",
    "mailto:@example.com",
    "mailto:a@b@example.com",
    "ops@example.com",
    "mailto:ops@-a.de",
  ],
  ...["https://example.com/ a", "https://exa mple.com", "https://<example.com>", "mailto:ops@ex\u00e4mple.com", ""],
])("the subject %j, which Apple refuses or cannot be a contact, is refused", (subject) =>
  expect(VapidSubject.safeParse(subject).error?.issues.map(({ message }) => message)).toEqual([
    expect.stringMatching(/^must be one address such as mailto:push@example\.com/),
  ]),
);
