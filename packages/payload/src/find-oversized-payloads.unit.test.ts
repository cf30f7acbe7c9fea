import { type NotificationContent, newNotificationId, newProjectId } from "@herald/contracts";
import { describe, expect, test } from "vitest";
import { renderApns } from "./apns.ts";
import { fcmWeight, renderFcm } from "./fcm.ts";
import { findOversizedPayloads, surelyFitsBytes } from "./find-oversized-payloads.ts";
import { renderWebPush } from "./webpush.ts";

const now = new Date();
const origin = { projectId: newProjectId(now), notificationId: newNotificationId(now) };
const lifetime = { ttlSeconds: 60, apnsExpiration: "1900000000" };

describe("weight", () => {
  const platforms = ["ios", "android", "web"] as const;
  const sized = (bytes: number): NotificationContent => ({ targets: ["all"], title: "t", body: "x".repeat(bytes) });

  test("content up to the last byte is accepted and one byte more is not, on each platform", () => {
    const room = { ios: 0, android: 0, web: 0 };
    for (const platform of platforms) {
      const problems = (bytes: number) => findOversizedPayloads(sized(bytes), origin, [platform], 100);
      let fits = 0;
      for (const step of [100, 1]) while (problems(fits + step).length === 0) fits += step;
      room[platform] = fits;
    }
    expect(Buffer.byteLength(renderApns(sized(room.ios), origin).body("x".repeat(100)))).toBe(4096);
    expect(Buffer.byteLength(renderWebPush(sized(room.web), origin).body("x".repeat(100)))).toBe(3993);
    expect(room.android).toBeGreaterThan(3500);
  });

  test.each([
    ["voip", 5120],
    ["location", 4096],
  ] as const)(
    "a %s push may have %i bytes, and is weighed as iOS gets it, whatever else the project sends to",
    (pushType, max) => {
      const sized = (bytes: number) => ({ targets: ["all"], push_type: pushType, data: { fill: "x".repeat(bytes) } });
      const problems = (bytes: number) => findOversizedPayloads(sized(bytes), origin, ["ios", "android", "web"], 100);
      let fits = 3_500;
      while (problems(fits + 1).length === 0) fits++;
      expect(Buffer.byteLength(renderApns(sized(fits), origin).body("x".repeat(100)))).toBe(max);
      expect(problems(fits + 1)).toEqual([expect.stringContaining(`${max + 1} bytes for ios, at most ${max} fit`)]);
    },
  );

  test("content small enough to skip rendering fits every platform, whatever its characters are", () => {
    const openToken = "x".repeat(200);
    const heaviest = (content: NotificationContent) =>
      Math.max(
        Buffer.byteLength(renderApns(content, origin).body(openToken)),
        ...platforms.map((platform) =>
          fcmWeight(renderFcm(content, origin, platform, lifetime).body({ token: "", kind: "token" }, openToken)),
        ),
        Buffer.byteLength(renderWebPush(content, origin).body(openToken)),
      );
    const texts = ["title", "body", "subtitle", "image", "sound", "category", "collapse_id", "link_to"] as const;
    const fields = [...texts, "thread", "android_channel", "icon"] as const;
    for (const character of ['"', "\\", "\u0001", "ü", "\u{1f600}", "x", "\ud800"])
      for (const fill of [
        ...fields.map((field) => (text: string) => ({
          ...sized(1),
          urgency: "critical",
          relevance: 0.5,
          [field]: text,
        })),
        (text: string) => ({ ...sized(1), data: { a: text } }),
        (text: string) => ({ ...sized(1), data: { a: { b: [text] } } }),
        (text: string) => ({ ...sized(1), data: Object.fromEntries([...text].map((one, at) => [`${at}${one}`, one])) }),
        (text: string) => ({
          ...sized(1),
          apns: { aps: { a: text } },
          fcm: { data: { a: text } },
          webpush: { a: text },
        }),
      ]) {
        let content: NotificationContent = sized(1);
        for (let length = 1; ; length += 7) {
          const longer = fill(character.repeat(length)) as NotificationContent;
          if (Buffer.byteLength(JSON.stringify(longer)) > surelyFitsBytes) break;
          content = longer;
        }
        expect(heaviest(content), JSON.stringify(content)).toBeLessThanOrEqual(3_993);
      }
  });

  test.each(["ios", "web"] as const)(
    "the last byte that fits %s through FCM is taken, and the next is not",
    (platform) => {
      const weightOf = (content: NotificationContent) =>
        fcmWeight(renderFcm(content, origin, platform, lifetime).body({ token: "", kind: "token" }, "x".repeat(100)));
      const body = (bytes: number) => ({ body: "x".repeat(bytes) });
      const override = (bytes: number): NotificationContent => ({
        ...sized(1),
        [platform]: platform === "ios" ? { aps: { alert: body(bytes) } } : { notification: body(bytes) },
      });
      let fits = 3_500;
      const problemsOf = (bytes: number) => findOversizedPayloads(override(bytes), origin, ["android"], 100);
      while (problemsOf(fits + 1).length === 0) fits++;
      expect(weightOf(override(fits))).toBe(4096);
      expect(problemsOf(fits + 1)).toEqual([
        expect.stringMatching(
          new RegExp(`^notification: renders to 4097 bytes for ${platform} through FCM, at most 4096`),
        ),
      ]);
    },
  );

  test("is reported for at most three localizations of each platform", () => {
    const languages = Array.from({ length: 10 }, (_, at) => [`en-${at}`, { body: "x".repeat(4_000) }]);
    const content = { ...sized(4_000), data: { a: "x".repeat(300) }, localizations: Object.fromEntries(languages) };
    expect(findOversizedPayloads(content, origin, ["ios", "web"], 100)).toHaveLength(6);
  });

  test("names the platform, the locale, the size and the limit", () => {
    const problems = findOversizedPayloads(
      { ...sized(10), localizations: { de: { body: "ü".repeat(3000) } } },
      origin,
      ["ios"],
      100,
    );
    expect(problems).toEqual([
      expect.stringMatching(/^notification: renders to 6\d{3} bytes for ios in de, at most 4096 fit/),
    ]);
  });
});
