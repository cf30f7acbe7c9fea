import { readFileSync } from "node:fs";
import { join } from "node:path";
import { ImportFormat as formats, type ImportFormat } from "@herald/contracts";
import { describe, expect, test } from "vitest";
import { parseDevices } from "../requests/put-devices.ts";
import { createReadLine } from "./read-line.ts";

const apns = "740f4707bebcf74f9b7c25d48e3358945f6aa01da5ddb387462c7eaf61bb78ad";
const keys = {
  p256dh: "BPCaFr0C6sVCfbf6zWAh-X7CvIzLpkMnFKFmpYqdJHNlnGxfOZL5OtqGWZKPQG92fgJUmPwR_8CQf0rDGxwTE3s",
  auth: "dGhpcyBpcyAxNiBieXRlcw",
};

/** The devices of a fixture, or why a line is refused. */
const read = async (format: ImportFormat, file: string): Promise<unknown[]> => {
  const text = readFileSync(join(import.meta.dirname, "formats/fixtures", file), "utf8");
  const lines = text.trimEnd().split("\n");
  const header = file.endsWith(".csv") ? lines.shift() : undefined;
  const readLine = createReadLine(format, header);
  const numbered = lines.map((text, at) => ({ n: at + 1, text }));
  const parsed = await parseDevices(numbered, readLine);
  return parsed.map((one) => ("device" in one ? one.device : one.problems[0]?.detail));
};

const notFor = (what: string) => `is for ${what}: Herald has no provider for it`;
const fcmOnIos = "cHkUvHDRT0mVg6gvEbWFaR:APA91bHun4MxP5egoKMwt2KZFBaFUH-1RYqx";
const tokenLike = (start: string) => expect.stringMatching(new RegExp(`^${start}${apns.slice(4)}$`, "i"));
const seen = "2026-03-01T08:00:00.000Z";

const fixtures: Record<string, readonly [ImportFormat, readonly unknown[]]> = {
  "herald.ndjson": [
    "herald",
    [
      {
        token: apns,
        platform: "ios",
        provider: "apns",
        metadata: { plan: "pro" },
        identifiers: { current_locale: "de-DE" },
        status: "active",
        topics: ["news"],
        environment: "production",
        user_id: "u_8412",
        last_seen_at: "2026-01-31T09:00:00.000Z",
      },
      {
        token: "fcm-token-1",
        platform: "android",
        metadata: {},
        identifiers: {},
        status: "inactive",
        topics: [],
        user_id: null,
      },
    ],
  ],
  "herald.csv": [
    "herald",
    [
      {
        token: apns,
        platform: "ios",
        provider: "apns",
        metadata: { plan: "pro" },
        identifiers: { current_locale: "de-DE" },
        status: "active",
        topics: ["news"],
        environment: "production",
        user_id: "u_8412",
        last_seen_at: "2026-01-31T09:00:00.000Z",
      },
      { token: "fcm-token-1", platform: "android", status: "inactive", user_id: "=cmd" },
    ],
  ],
  "gorush.csv": [
    "herald",
    [
      { token: apns, platform: "ios", user_id: "u_8412", topics: ["news"] },
      { token: "fcm-token-1", platform: "android" },
    ],
  ],
  "pinpoint.ndjson": [
    "pinpoint",
    [
      {
        token: apns,
        platform: "ios",
        environment: "production",
        user_id: "u_8412",
        metadata: { plan: "pro", interests: ["a", "b"], tier: "gold", sessions: 12 },
        identifiers: {
          current_locale: "de-DE",
          app_version: "2.4.1",
          system_version: "19.1",
          model: "iPhone15,2",
          current_time_zone: "Europe/Berlin",
          country: "DE",
        },
        last_seen_at: seen,
      },
      { token: "fcm-token-1", platform: "android", status: "inactive", last_seen_at: "2026-02-01T08:00:00.000Z" },
      notFor("email addresses"),
      { token: fcmOnIos, platform: "ios", provider: "fcm", metadata: { plan: "pro", plan_2: "family" } },
      expect.stringContaining("is for VoIP tokens, which the app sends to Herald"),
    ],
  ],
  "pinpoint.csv": [
    "pinpoint",
    [
      {
        token: apns,
        platform: "ios",
        environment: "production",
        user_id: "u_8412",
        metadata: { plan: "pro", team: ["red", "blue"], sessions: 12 },
        identifiers: { current_locale: "de-DE", current_time_zone: "Europe/Berlin", country: "DE" },
        last_seen_at: seen,
      },
      {
        token: "fcm-token-1",
        platform: "android",
        identifiers: { current_locale: "en-US", country: "US" },
        status: "inactive",
      },
      notFor("phone numbers (SMS)"),
    ],
  ],
  "sns.ndjson": [
    "sns",
    [
      { token: apns, platform: "ios", environment: "sandbox", metadata: { plan: "pro" } },
      { token: "fcm-token-1", platform: "android", metadata: { custom_user_data: "u_8412" }, status: "inactive" },
      notFor("Amazon devices (ADM)"),
      expect.stringContaining("is for VoIP tokens"),
      { token: tokenLike("841f"), platform: "ios", environment: "production", app: "com.example.driver" },
    ],
  ],
  "onesignal.csv": [
    "onesignal",
    [
      {
        token: apns,
        platform: "ios",
        user_id: "u_8412",
        metadata: { plan: "pro" },
        identifiers: {
          current_locale: "de",
          app_version: "2.4.1",
          system_version: "19.1",
          model: "iPhone15,2",
          current_time_zone: "Europe/Berlin",
          country: "DE",
        },
        last_seen_at: seen,
      },
      expect.objectContaining({ token: "fcm-token-1", platform: "android", status: "inactive" }),
      expect.objectContaining({ token: "https://push.example/1", platform: "web", keys }),
      notFor("email addresses"),
      notFor("Huawei devices (HMS)"),
      expect.objectContaining({ token: tokenLike("840f"), status: "inactive", user_id: "u_2" }),
    ],
  ],
  "firebase.txt": ["firebase", [{ token: "dQw4w9WgXcQ:APA91bHun4MxP5egoKMwt2KZFBaFUH-1RYqx", platform: "android" }]],
  "firebase.ndjson": [
    "firebase",
    [
      {
        token: "fcm-token-1",
        platform: "ios",
        provider: "fcm",
        user_id: "u_8412",
        topics: ["news"],
        metadata: { tags: ["with space"] },
        identifiers: { current_locale: "de-DE" },
        last_seen_at: seen,
      },
      { token: "fcm-token-2", platform: "android", user_id: "u_2", metadata: { plan: "pro" } },
      {
        token: "fcm-token-3",
        platform: "ios",
        provider: "fcm",
        app: "com.example.driver",
        topics: ["news"],
        identifiers: { app_version: "2.4.1" },
        last_seen_at: seen,
      },
      notFor("Windows devices (WNS)"),
    ],
  ],
  "parse.ndjson": [
    "parse",
    [
      {
        token: apns,
        platform: "ios",
        app: "com.example.shop",
        installation_id: "6f9c",
        user_id: "u_8412",
        topics: ["news"],
        metadata: { plan: "pro" },
        identifiers: {
          current_locale: "de-DE",
          app_version: "2.4.1",
          current_time_zone: "Europe/Berlin",
        },
        last_seen_at: seen,
      },
      { token: "fcm-token-1", platform: "android", user_id: "u_2", last_seen_at: "2026-02-01T08:00:00.000Z" },
      notFor("Windows devices (WNS)"),
      {
        token: fcmOnIos,
        platform: "ios",
        provider: "fcm",
        app: "com.example.driver",
        metadata: {
          visits: 17,
          lastVisit: "2026-02-01T08:00:00.000Z",
          trips: [{ id: "65b8f1e2a1b2c3d4e5f60718", km_total: 12.5 }],
          plan_name: "gold",
          plan_name_2: "pro",
        },
        last_seen_at: "2026-02-01T08:00:00.000Z",
      },
      {
        token: "https://push.example/5",
        platform: "web",
        keys,
        metadata: { since: "2026-01-01T00:00:00.000Z" },
        last_seen_at: seen,
      },
    ],
  ],
  "azure-nh.xml": [
    "azure-nh",
    [
      { token: apns, platform: "ios", topics: ["news"], metadata: { tags: ["user:8412"] } },
      { token: "fcm-token-1", platform: "android" },
      { token: "https://push.example/1", platform: "web", keys, installation_id: "i1", user_id: "u_8412" },
      notFor("Windows devices (WNS)"),
      { token: tokenLike("841f"), platform: "ios", installation_id: "i2", user_id: "u_2", topics: ["vip"] },
      {
        token: "fcm-token-3",
        platform: "android",
        installation_id: "i3",
        status: "inactive",
        last_seen_at: "2026-03-01T08:00:00.123Z",
      },
    ],
  ],
  "pnta.ndjson": [
    "pnta",
    [
      {
        token: apns,
        platform: "ios",
        metadata: { user_id: "u_8412", plan: "pro" },
        identifiers: { app_version: "2.4.1" },
        last_seen_at: seen,
      },
      { token: "fcm-token-1", platform: "android", user_id: "u_2" },
    ],
  ],
};

test.each(Object.entries(fixtures))(
  "%s: every line is the device that it means, or refused",
  async (file, [format, devices]) => {
    expect(await read(format, file)).toEqual(devices);
  },
);

test("every format has a fixture", () => {
  expect(new Set(Object.values(fixtures).map(([format]) => format))).toEqual(new Set(formats.options));
});

describe("a line that cannot be read is refused with its reason", () => {
  const reason = (line: string | { problem: "too-long" | "not-utf8" }, header?: string) => {
    const found = createReadLine("herald", header)(typeof line === "string" ? { text: line } : line);
    return "problems" in found ? found.problems[0]?.detail : found;
  };
  test.each([
    ["{", undefined, "is not JSON"],
    ["[{}]", undefined, "one per line"],
    ['{"a":{"__proto__":1}}', undefined, "__proto__"],
    ['{"result":"refused","problems":[]}', undefined, undefined],
    [`{"a":${"[".repeat(100)}${"]".repeat(100)}}`, undefined, "nested"],
    ["a\0b", undefined, "UTF-16"],
    ["a,b,c", "token,platform", "has 3 cells where the header has 2"],
    ['"a,ios', "token,platform", "quotes"],
    ["a,ios", '"token,platform', "the header is not CSV"],
    [{ problem: "not-utf8" }, undefined, "is not UTF-8"],
    [{ problem: "too-long" }, undefined, "is longer than 65536 bytes"],
  ] as const)("%s", (line, header, expected) => {
    if (expected === undefined) expect(reason(line, header)).toHaveProperty("device");
    else expect(reason(line, header)).toContain(expected);
  });
});

describe("a line costs no more than its bytes", () => {
  const many = (count: number, part: string) => part.repeat(count);
  const deep = `${many(8_000, '{"a":')}1${many(8_000, "}")}`;
  const token = `"token":"${apns}"`;
  test.each<[ImportFormat, string, string | undefined, string]>([
    ["herald", many(200, ","), many(199, "a,"), "has more than 200 cells"],
    ["herald", "a", many(200, ","), "the header is not CSV"],
    ["herald", `{"token":[${many(2_000, "1,")}1]}`, undefined, "at most 2000 values"],
    ["herald", `a,"${deep.replaceAll('"', '""')}"`, "token,metadata", "nested at most 32 deep"],
    ["onesignal", `0,"${deep.replaceAll('"', '""')}"`, "device_type,tags", "nested at most 32 deep"],
    ["firebase", `{${token},"metadata":${JSON.stringify(deep)}}`, undefined, "nested at most 32 deep"],
    ["firebase", `{${token},"topics":"${many(3_000, "a,")}"}`, undefined, "at most 2000 entries"],
    ["azure-nh", `<AppleRegistrationDescription >${many(201, "<a></a>")}`, undefined, "more than 200 elements"],
  ])("%s: %.20s", (format, text, header, expected) => {
    const found = createReadLine(format, header)({ text });
    expect("problems" in found && found.problems[0]?.detail).toContain(expected);
  });
});

test("character references of half an emoji become U+FFFD, and those of a whole one stay", () => {
  const line = (user: string) =>
    `<AppleRegistrationDescription ><DeviceToken>${apns}</DeviceToken><Tags>${user}</Tags></AppleRegistrationDescription>`;
  const readLine = createReadLine("azure-nh", undefined);
  const tagsOf = (text: string) =>
    (readLine({ text: line(text) }) as { device: Record<string, object> }).device.metadata;
  expect(tagsOf("Hi &#55357;")).toEqual({ tags: ["Hi \ufffd"] });
  expect(tagsOf("Hi &#xD83D;&#xDE00;")).toEqual({ tags: ["Hi 😀"] });
});

test("cells that spreadsheets would run lose the quote that exports put before them, and no other", () => {
  const readLine = createReadLine("herald", "token,platform,user_id");
  const userOf = (cell: string) => {
    const found = readLine({ text: `t,android,"${cell}"` });
    return "device" in found ? (found.device as { user_id: string }).user_id : found;
  };
  expect(["'=1+1", "'+1", "'-1", "'@a", "'a", "=1"].map(userOf)).toEqual(["=1+1", "+1", "-1", "@a", "'a", "=1"]);
});

test("an exported device keeps its app, and leaves the tokens of push types to its app", async () => {
  const { token, platform, app } = { token: apns, platform: "ios", app: "com.example.driver" };
  const tokens = [{ type: "voip", token: apns, registered_at: seen }];
  const cells = [apns, platform, app, JSON.stringify(tokens).replaceAll('"', '""')];
  for (const [header, text] of [
    [undefined, JSON.stringify({ token, platform, app, tokens })],
    ["token,platform,app,tokens", cells.map((cell) => `"${cell}"`).join(",")],
  ] as const)
    expect(await parseDevices([{ text }], createReadLine("herald", header))).toEqual([
      { device: { token, platform, app }, newId: undefined },
    ]);
});
