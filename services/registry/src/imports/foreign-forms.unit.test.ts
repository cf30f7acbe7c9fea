import { type ImportFormat, importLimits } from "@herald/contracts";
import { describe, expect, test } from "vitest";
import { createChunkReport } from "./chunk-report.ts";
import { createReadLine } from "./read-line.ts";

const apns = "740f4707bebcf74f9b7c25d48e3358945f6aa01da5ddb387462c7eaf61bb78ad";

/** The device of a line, or why it is refused, and what the report says of its fields. */
const read = (format: ImportFormat, line: object | string, header?: string) => {
  const report = createChunkReport();
  const text = typeof line === "string" ? line : JSON.stringify(line);
  const found = createReadLine(format, header, report)({ text });
  const device = ("device" in found ? found.device : { refused: found.problems[0]?.detail }) as Record<string, unknown>;
  const notes = report.notes().map(({ kind, field, name }) => [kind, field, ...(name === undefined ? [] : [name])]);
  return { device, notes, unsupported: report.unsupported() };
};

describe("a person who opted out is never imported as active", () => {
  const onesignal = (more: object) => ({ device_type: 1, identifier: "t", ...more });
  test.each<[ImportFormat, object]>([
    ["onesignal", onesignal({ notification_types: -2 })],
    ["onesignal", onesignal({ notification_types: 0 })],
    ["onesignal", onesignal({ notification_types: "-99" })],
    ["onesignal", onesignal({ invalid_identifier: "true" })],
    ["onesignal", onesignal({ enabled: false })],
    ["pinpoint", { ChannelType: "GCM", Address: "t", OptOut: "all" }],
    ["pinpoint", { ChannelType: "GCM", Address: "t", EndpointStatus: "Inactive" }],
    ["sns", { EndpointArn: "arn:aws:sns:x:1:endpoint/GCM/a/1", Token: "t", Enabled: "FALSE" }],
    ["sns", { EndpointArn: "arn:aws:sns:x:1:endpoint/GCM/a/1", Attributes: { Token: "t", Enabled: false } }],
    ["azure-nh", { platform: "gcm", pushChannel: "t", pushChannelExpired: "true" }],
    ["firebase", { token: "t", status: "Inactive" }],
    ["firebase", { token: "t", enabled: "f" }],
    ["pnta", { platform: "android", token: "t", status: "inactive" }],
  ])("%s: %j", (format, line) => {
    expect(read(format, line).device).toMatchObject({ token: "t", platform: "android", status: "inactive" });
  });

  test.each<[ImportFormat, object]>([
    ["onesignal", onesignal({ notification_types: 1, invalid_identifier: "f" })],
    ["onesignal", onesignal({ notification_types: "", invalid_identifier: false })],
    ["pinpoint", { ChannelType: "GCM", Address: "t", OptOut: "NONE", EndpointStatus: "ACTIVE" }],
    ["firebase", { token: "t", enabled: 1 }],
  ])("and one who did not is: %s: %j", (format, line) => {
    expect(read(format, line).device).not.toHaveProperty("status");
  });
});

describe("names of platforms and channels", () => {
  test.each<[ImportFormat, object, object]>([
    ["pinpoint", { ChannelType: "apns_sandbox", Address: apns }, { platform: "ios", environment: "sandbox" }],
    ["onesignal", { type: "iOSPush", token: apns, test_type: 1 }, { platform: "ios", environment: "sandbox" }],
    ["onesignal", { device_type: "17", identifier: "https://web.push.apple.com/1" }, { platform: "web" }],
    ["onesignal", { device_type: 7, identifier: "https://web.push.apple.com/1" }, { platform: "web" }],
    ["azure-nh", { kind: "FcmV1Template", fcmV1RegistrationId: "t" }, { platform: "android", token: "t" }],
    ["azure-nh", { kind: "Gcm", gcmRegistrationId: "t" }, { platform: "android", token: "t" }],
    ["firebase", { token: "t", platform: "CHROME" }, { platform: "web", provider: "fcm" }],
    ["firebase", { token: "t", platform: "iPadOS" }, { platform: "ios", provider: "fcm" }],
  ])("%s: %j", (format, line, device) => {
    expect(read(format, line).device).toMatchObject(device);
  });

  test.each<[ImportFormat, object, string]>([
    ["onesignal", { device_type: 2, identifier: "t" }, "Amazon devices (ADM)"],
    ["onesignal", { device_type: 4, identifier: "t" }, "Chrome apps and extensions"],
    ["onesignal", { device_type: 7, identifier: apns }, "Safari's own push before Web Push"],
    ["onesignal", { device_type: 14, identifier: "+49" }, "phone numbers (SMS)"],
    ["pinpoint", { ChannelType: "BAIDU", Address: "t" }, "devices of Baidu Cloud Push"],
    ["sns", { EndpointArn: "arn:aws-cn:sns:x:1:endpoint/MACOS_SANDBOX/a/1", Token: apns }, "apps of macOS"],
    ["azure-nh", { platform: "xiaomi", pushChannel: "t" }, "Xiaomi devices (Mi Push)"],
    ["parse", { deviceType: "dotnet", deviceToken: "t" }, 'the platform "dotnet"'],
    ["parse", { deviceType: "android", deviceToken: "ExponentPushToken[x]" }, "Expo's push service"],
    ["firebase", { token: "t", platform: "huawei" }, "Huawei devices (HMS)"],
    ["firebase", { token: "t", platform: "constructor" }, 'the platform "constructor"'],
  ])("%s: %j is refused by its name, and counted apart", (format, line, words) => {
    const { device, notes, unsupported } = read(format, line);
    expect(device).toEqual({ refused: expect.stringContaining(`is for ${words}`) });
    expect({ notes, unsupported }).toEqual({ notes: [], unsupported: 1 });
  });

  test("a line without one is a mistake of the file", () => {
    const { device, unsupported } = read("pinpoint", { Address: apns });
    expect({ device, unsupported }).toEqual({ device: { token: apns }, unsupported: 0 });
  });
});

describe("tokens", () => {
  const spaced = apns.replaceAll(/.{8}(?=.)/g, "$& ");
  test.each<[ImportFormat, object]>([
    ["parse", { deviceType: "ios", deviceToken: `<${spaced}>` }],
    ["onesignal", { device_type: 0, identifier: spaced }],
    ["azure-nh", { kind: "Apple", deviceToken: `<${apns}>` }],
  ])("of APNs lose brackets and spaces: %s", (format, line) => {
    expect(read(format, line).device.token).toBe(apns);
  });

  test("of another form stay, to be refused with their reason", () => {
    expect(read("parse", { deviceType: "ios", deviceToken: "<not hex>" }).device.token).toBe("<not hex>");
    expect(read("parse", { deviceType: "android", deviceToken: "<ab cd>" }).device.token).toBe("<ab cd>");
  });
});

describe("columns", () => {
  test.each<[ImportFormat, string, string, object]>([
    [
      "sns",
      "endpointarn,TOKEN,Enabled",
      "arn:aws:sns:x:1:endpoint/GCM/a/1,t,false",
      { token: "t", status: "inactive" },
    ],
    ["firebase", "FCM Token;Platform;User-ID", "t;android;u,1", { token: "t", user_id: "u,1" }],
    ["herald", "Token\tPLATFORM\tmetadata.Plan", "t\tandroid\tpro", { token: "t", metadata: { Plan: "pro" } }],
    ["parse", "deviceToken,deviceType,channels", 't,android,"[""news""]"', { topics: ["news"] }],
    ["parse", "deviceToken,deviceType,user.objectId", "t,android,u", { user_id: "u" }],
    [
      "herald",
      "token,platform,last_seen_at",
      "t,android,2026-01-31 10:00:00",
      { last_seen_at: "2026-01-31T10:00:00.000Z" },
    ],
  ])("%s: %s", (format, header, line, device) => {
    const { device: found, notes } = read(format, line, header);
    expect(found).toMatchObject(device);
    expect(notes).toEqual([]);
  });
});

describe("values that stores write as objects", () => {
  test("are plain in every format whose rows an app may keep in MongoDB", () => {
    const line = { _id: { $oid: "65b8" }, token: "t", updatedAt: { $date: { $numberLong: "1706695200000" } } };
    expect(read("firebase", line).device.last_seen_at).toBe("2024-01-31T10:00:00.000Z");
  });

  test("of Herald's own export come back as they are", () => {
    const metadata = { since: { __type: "Date", iso: "2024-01-31T10:00:00.000Z" } };
    expect(read("herald", { token: "t", platform: "android", metadata }).device.metadata).toEqual(metadata);
  });
});

describe("the report names", () => {
  test.each<[string, ImportFormat, object, unknown[]]>([
    [
      "fields that a device has no place for",
      "pinpoint",
      { ChannelType: "GCM", Address: "t", Location: { City: "Ulm" }, CohortId: "7" },
      [
        ["unknown", "Location.City"],
        ["unknown", "CohortId"],
      ],
    ],
    [
      "values that are not valid",
      "onesignal",
      { device_type: 1, identifier: "t", timezone_id: "Mars/Base", language: "?", last_active: "soon" },
      [
        ["invalid", "language"],
        ["invalid", "timezone_id"],
        ["invalid", "last_active"],
      ],
    ],
    [
      "an app id that is none",
      "parse",
      { deviceType: "ios", deviceToken: apns, appIdentifier: "my app" },
      [["invalid", "appIdentifier"]],
    ],
    [
      "JSON that is none",
      "onesignal",
      { device_type: 1, identifier: "t", tags: '{"plan"=>"pro"}' },
      [["invalid", "tags"]],
    ],
    [
      "a bad zone of Herald's own export",
      "herald",
      { token: "t", platform: "android", identifiers: { current_time_zone: "Mars/Base" } },
      [["invalid", "identifiers.current_time_zone"]],
    ],
    [
      "what it does not take of Herald's own export",
      "herald",
      { id: "dev_1", token: "t", platform: "android" },
      [["unknown", "id"]],
    ],
    [
      "keys that get another name, at any depth",
      "pnta",
      { platform: "android", token: "t", metadata: { "a.b": { $c: 1 } } },
      [
        ["renamed", "metadata.a.b.$c", "metadata.a_b._c"],
        ["renamed", "metadata.a.b", "metadata.a_b"],
      ],
    ],
    ["tags beside the app's own", "onesignal", { device_type: 1, identifier: "t", tags: { tags: "a" } }, []],
    [
      "tags that take another name",
      "pnta",
      { platform: "android", token: "t", topics: ["not a topic"], metadata: { tags: "a" } },
      [["renamed", "tags", "metadata.tags_2"]],
    ],
  ])("%s", (_, format, line, notes) => {
    expect(read(format, line).notes).toEqual(notes);
  });

  test("no blank values", () => {
    const blank = { device_type: 1, identifier: "t", ad_id: "", tags: {}, playtime: null, location: " ", list: [] };
    expect(read("onesignal", blank).notes).toEqual([]);
  });

  test("a field once a line, at most 200 names, cut", () => {
    const report = createChunkReport();
    const readLine = createReadLine("onesignal", undefined, report);
    const many = Object.fromEntries(Array.from({ length: 300 }, (_, at) => [`${at} ${"x".repeat(200)}`, at]));
    for (const more of [{ ad_id: "a", ip: "1" }, { ad_id: "b" }, many])
      readLine({ text: JSON.stringify({ device_type: 1, identifier: "t", ...more }) });
    const notes = report.notes();
    expect(notes).toHaveLength(importLimits.reportedFields);
    expect(notes[0]).toEqual({ kind: "unknown", field: "ad_id", lines: 2 });
    expect(Math.max(...notes.map(({ field }) => field.length))).toBe(importLimits.fieldLength);
  });
});
