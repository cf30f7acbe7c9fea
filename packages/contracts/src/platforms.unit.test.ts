import fc from "fast-check";
import { expect, test } from "vitest";
import { ChangeMetadata, Identification, PutFurtherToken, RegisterDevice } from "./http/v1/device-bodies.ts";
import { DeviceFilter } from "./http/v1/devices.ts";
import { parseRecipient } from "./http/v1/new-recipients.ts";
import { testPushOf } from "./http/v1/provider-test.ts";
import { PutDevice } from "./http/v1/put-devices.ts";
import { canonicalToken, maxTokenLength, Provider, WebPushKeys } from "./platforms.ts";
import { VapidPublicKey } from "./vapid.ts";

const upper = "0A".repeat(32);
const lower = upper.toLowerCase();
const keys = { p256dh: `B${"A".repeat(86)}`, auth: "A".repeat(22) };

test.each<[string, string, Provider | undefined, string]>([
  ["an APNs token", upper, "apns", lower],
  ["an APNs token, as its text says", upper, undefined, lower],
  ["a short APNs token", "0A".repeat(8), undefined, "0a".repeat(8)],
  ["an APNs token of 22 digits", "0A".repeat(11), "apns", "0a".repeat(11)],
  ["an Installation ID that looks hexadecimal", "cA".repeat(11), undefined, "cA".repeat(11)],
  ["an FCM token", "fA:APA91bX", undefined, "fA:APA91bX"],
  ["hexadecimal digits that FCM gave", upper, "fcm", upper],
  ["a text with an odd number of digits", `${upper}A`, undefined, `${upper}A`],
  ["an endpoint", "https://Push.Example:443/Ab?C=d", "webpush", "https://push.example/Ab?C=d"],
  ["an endpoint, as its text says", "HTTPS://PUSH.EXAMPLE/Ab#x", undefined, "https://push.example/Ab"],
  ["an endpoint of a host with an umlaut", "https://bücher.example/A", "webpush", "https://xn--bcher-kva.example/A"],
  ["an endpoint with escapes", "https://push.example/%2f%7E", "webpush", "https://push.example/%2f%7E"],
  ["an endpoint on another port", "https://push.example:8443/", "webpush", "https://push.example:8443/"],
  ["no URL", "x", "webpush", "x"],
])("%s has one form", (_, token, provider, expected) => {
  expect(canonicalToken(token, provider)).toBe(expected);
});

test("the form of a token has itself as its form, and is no longer than a token may be", () => {
  const url = fc.tuple(fc.webAuthority(), fc.webPath(), fc.webQueryParameters());
  const token = fc.oneof(
    fc.string(),
    fc.stringMatching(/^[0-9A-Fa-f]{16,64}$/),
    url.map(([host, path, query]) => `https://${host}${path}?${query}`),
  );
  fc.assert(
    fc.property(token, fc.option(fc.constantFrom(...Provider.options), { nil: undefined }), (text, provider) => {
      const once = canonicalToken(text, provider);
      expect(canonicalToken(once, provider)).toBe(once);
    }),
  );
  const long = `https://push.example/${'"'.repeat(maxTokenLength - 21)}`;
  expect(canonicalToken(long, "webpush")).toHaveLength(maxTokenLength);
});

test("every request gives a token its form", () => {
  const device = { token: upper, platform: "ios" };
  const projectId = "prj_06bq4ghm31tz5d2ns8y7k9w0ac";
  const identification = { project_id: projectId, identifier: upper, previous_identifier: upper, platform: "ios" };
  expect(RegisterDevice.parse({ device })).toEqual({ device: { ...device, token: lower } });
  expect(PutDevice.parse(device)).toMatchObject({ token: lower });
  expect(Identification.parse(identification)).toMatchObject({ identifier: lower, previous_identifier: lower });
  expect(ChangeMetadata.parse({ metadata: {}, identifier: upper })).toMatchObject({ identifier: lower });
  expect(PutFurtherToken.parse({ token: { token: upper } })).toEqual({ token: { token: lower } });
  expect(DeviceFilter.parse({ token: upper })).toEqual({ token: lower });
  expect(testPushOf("apns").parse({ token: upper })).toEqual({ token: lower });
  expect(parseRecipient(`token:${upper}`)).toEqual({ kind: "token", key: lower });
  for (const [platform, provider] of [["android"], ["ios", "fcm"], ["web", "fcm"]])
    expect(PutDevice.parse({ token: upper, platform, provider })).toMatchObject({ token: upper });
  const web = { token: "https://Push.example/A#b", platform: "web", keys };
  expect(RegisterDevice.parse({ device: web })).toMatchObject({ device: { token: "https://push.example/A" } });
});

test("a key with padding is the key without it", () => {
  expect(WebPushKeys.parse({ p256dh: `${keys.p256dh}=`, auth: `${keys.auth}==` })).toEqual(keys);
  expect(VapidPublicKey.parse(`${keys.p256dh}=`)).toBe(keys.p256dh);
});
