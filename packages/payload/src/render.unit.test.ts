import { type NotificationContent, newNotificationId, newProjectId } from "@herald/contracts";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { renderApns } from "./apns.ts";
import { fcmWeight, renderFcm } from "./fcm.ts";
import { findOversizedPayloads, surelyFitsBytes } from "./find-oversized-payloads.ts";
import { chooseLocalization } from "./localize.ts";
import { renderWebPush, webPushTopic } from "./webpush.ts";

const now = new Date();
const origin = { projectId: newProjectId(now), notificationId: newNotificationId(now) };
const own = { notification_id: origin.notificationId, project_id: origin.projectId, token: "T" };
const hello: NotificationContent = { targets: ["all"], title: "Hello", body: "World", link_to: "/news" };
const lifetime = { ttlSeconds: 60, apnsExpiration: "1900000000" };
const target = { token: 'a"b', kind: "token" } as const;

const apns = (content: NotificationContent, locale?: string) =>
  JSON.parse(renderApns(content, origin).body("T", locale));
const fcm = (content: NotificationContent, locale?: string) =>
  JSON.parse(renderFcm(content, origin, "android", lifetime).body(target, "T", locale));
const web = (content: NotificationContent, locale?: string) =>
  JSON.parse(renderWebPush(content, origin).body("T", locale));

describe("APNs", () => {
  test("shows the words and carries what an open needs beside `aps`", () => {
    expect(apns(hello)).toEqual({ aps: { alert: { title: "Hello", body: "World" } }, link_to: "/news", ...own });
  });

  test("maps every field", () => {
    const content: NotificationContent = {
      ...hello,
      badge: 0,
      sound: "ping.caf",
      category: "ORDER",
      image: "https://example.com/i.png",
      data: { order: "42" },
    };
    expect(apns(content)).toEqual({
      aps: {
        alert: { title: "Hello", body: "World" },
        badge: 0,
        sound: "ping.caf",
        category: "ORDER",
        "mutable-content": 1,
      },
      link_to: "/news",
      image: "https://example.com/i.png",
      data: { order: "42" },
      ...own,
    });
  });

  test.each([
    [{}, "alert", 10],
    [{ priority: "high" }, "alert", 10],
    [{ priority: "normal" }, "alert", 5],
    [{ silent: true }, "background", 5],
    [{ silent: true, priority: "high" }, "background", 5],
  ] as const)("%j is pushed as %s with priority %i", (fields, pushType, priority) => {
    expect(renderApns({ ...hello, ...fields }, origin)).toMatchObject({ pushType, priority });
  });

  test("a silent push wakes the app and shows nothing", () => {
    expect(apns({ ...hello, silent: true }).aps).toEqual({ "content-available": 1 });
  });

  test("an override is merged over it, `null` removes, and the notification's identity stays", () => {
    const ios = { aps: { alert: { title: null, subtitle: "S" }, "thread-id": "t" }, project_id: "x", token: "x" };
    expect(apns({ ...hello, ios })).toEqual({
      aps: { alert: { body: "World", subtitle: "S" }, "thread-id": "t" },
      link_to: "/news",
      ...own,
    });
  });
});

describe("FCM", () => {
  test("shows the words, and hands the app what an open needs as data", () => {
    const content = {
      data: { order: "42" },
      collapse_id: "c",
      sound: "s",
      category: "C",
      click_action: "OPEN",
      badge: 3,
    };
    expect(fcm({ ...hello, ...content })).toEqual({
      message: {
        notification: { title: "Hello", body: "World" },
        android: {
          priority: "HIGH",
          ttl: "60s",
          collapse_key: "c",
          notification: { sound: "s", click_action: "OPEN", notification_count: 3, tag: "c" },
        },
        data: { order: "42", link_to: "/news", ...own },
        token: 'a"b',
      },
    });
  });

  test("a silent one is data alone", () => {
    const { message } = fcm({ ...hello, silent: true });
    expect(message.notification).toBeUndefined();
    expect(message.android).toEqual({ priority: "NORMAL", ttl: "60s" });
  });

  test("an override cannot change who gets it, nor leave the JSON broken", () => {
    const { message } = fcm({
      ...hello,
      android: { android: null, notification: null, topic: "all", fid: "x", token: "x" },
    });
    expect(message).toEqual({ data: { link_to: "/news", ...own }, token: 'a"b' });
  });

  test("an Installation ID goes into its own field", () => {
    const body = renderFcm(hello, origin, "android", lifetime).body({ token: "f", kind: "fid" }, "T");
    expect(JSON.parse(body).message).toMatchObject({ fid: "f" });
  });
});

describe("FCM on other platforms than Android", () => {
  const on = (platform: "ios" | "web", content: NotificationContent) =>
    JSON.parse(renderFcm(content, origin, platform, lifetime).body(target, "T")).message;
  const all: NotificationContent = {
    ...hello,
    link_to: "https://example.com/news",
    image: "https://example.com/a.png",
    badge: 3,
    sound: "ping",
    category: "news",
    collapse_id: "c",
    data: { a: "b" },
  };

  test("an iOS device gets what APNs would get, and `data` where it is on Android", () => {
    expect(on("ios", all)).toEqual({
      token: 'a"b',
      data: { a: "b", link_to: "https://example.com/news", ...own },
      apns: {
        headers: {
          "apns-push-type": "alert",
          "apns-priority": "10",
          "apns-expiration": "1900000000",
          "apns-collapse-id": "c",
        },
        payload: {
          aps: {
            alert: { title: "Hello", body: "World" },
            badge: 3,
            sound: "ping",
            category: "news",
            "mutable-content": 1,
          },
        },
        fcm_options: { image: "https://example.com/a.png" },
      },
    });
  });

  test("a browser gets what Web Push would carry, and `data` where it is on Android", () => {
    expect(on("web", { ...all, badge_image: "https://example.com/b.png" })).toEqual({
      token: 'a"b',
      data: { a: "b", link_to: "https://example.com/news", app_badge: "3", ...own },
      webpush: {
        headers: { TTL: "60", Urgency: "high", Topic: "c" },
        notification: {
          title: "Hello",
          body: "World",
          image: "https://example.com/a.png",
          tag: "c",
          badge: "https://example.com/b.png",
          sound: "ping",
          category: "news",
        },
        fcm_options: { link: "https://example.com/news" },
      },
    });
  });

  test("a silent push is in the background, with normal priority", () => {
    const { apns } = on("ios", { ...hello, silent: true });
    expect(apns.headers).toMatchObject({ "apns-push-type": "background", "apns-priority": "5" });
    expect(apns.payload).toEqual({ aps: { "content-available": 1 } });
    const { webpush } = on("web", { ...hello, silent: true });
    expect(webpush).toMatchObject({ headers: { Urgency: "normal" } });
    expect(webpush).not.toHaveProperty("notification");
  });

  test("a path in the app is no link of FCM's, which must be https", () => {
    expect(on("web", hello).webpush).not.toHaveProperty("fcm_options");
    expect(on("web", hello).data).toMatchObject({ link_to: "/news" });
  });

  test("each platform's override means the same as with its own provider", () => {
    const ios = on("ios", {
      ...all,
      ios: { aps: { alert: { subtitle: "S" }, badge: null }, data: { n: 1 }, image: null, custom: { x: 1 } },
    });
    expect(ios.apns.payload).toMatchObject({ aps: { alert: { title: "Hello", subtitle: "S" } }, custom: { x: 1 } });
    expect(ios.apns.payload.aps).not.toHaveProperty("badge");
    expect(ios.apns).not.toHaveProperty("fcm_options");
    expect(ios.data).toMatchObject({ a: "b", n: "1" });
    const web = on("web", { ...all, web: { notification: { requireInteraction: true }, extra: { y: 2 } } });
    expect(web.webpush.notification).toMatchObject({ requireInteraction: true, title: "Hello" });
    expect(web.data).toMatchObject({ extra: '{"y":2}' });
  });

  test("an override cannot change who gets it", () => {
    const message = on("ios", {
      ...hello,
      ios: { token: "x", topic: "all", notification_id: "x", data: { token: "x" } },
    });
    expect(message).toMatchObject({ token: 'a"b', data: own });
    expect(message).not.toHaveProperty("topic");
  });
});

test("what replaces on the screen is the collapse id, and without one the notification's own, so that a repeat shows once", () => {
  const { notificationId } = origin;
  expect(fcm(hello).message.android).toMatchObject({ notification: { tag: notificationId } });
  expect(fcm(hello).message.android).not.toHaveProperty("collapse_key");
  expect(web(hello).notification.tag).toBe(notificationId);
  expect(fcm({ ...hello, collapse_id: "c" }).message.android).toMatchObject({
    collapse_key: "c",
    notification: { tag: "c" },
  });
});

test("a web notification's badge is an image, and the number is the app's", () => {
  const { notification, app_badge } = web({ ...hello, badge: 3, badge_image: "https://example.com/b.png" });
  expect(notification).toMatchObject({ badge: "https://example.com/b.png" });
  expect(app_badge).toBe(3);
  expect(web({ ...hello, badge: 3 }).notification).not.toHaveProperty("badge");
});

test("Web Push carries the same for the service worker", () => {
  expect(web({ ...hello, collapse_id: "c", web: { notification: { requireInteraction: true } } })).toEqual({
    notification: { title: "Hello", body: "World", tag: "c", requireInteraction: true },
    link_to: "/news",
    ...own,
  });
});

test("a dangerous link that an older gateway accepted does not reach a device, and everything else does", () => {
  const bad = "javascript:alert(1)";
  const override = { link_to: "//a.example", data: { link_to: bad, keep: "1" } };
  const content: NotificationContent = { ...hello, link_to: bad, ios: override, android: override, web: override };
  expect(apns(content)).toEqual({ aps: { alert: { title: "Hello", body: "World" } }, data: { keep: "1" }, ...own });
  expect(fcm(content).message.data).toEqual({ keep: "1", ...own });
  const shown = { title: "Hello", body: "World", tag: own.notification_id };
  expect(web(content)).toEqual({ notification: shown, data: { keep: "1" }, ...own });
  expect(apns({ ...hello, localizations: { de: { link_to: bad } } }, "de").link_to).toBeUndefined();
  const actions = [{ navigate: bad, title: "a" }, { navigate: ["//a.example"], title: "b" }, { navigate: "/c" }];
  expect(web({ ...hello, web: { notification: { actions } } }).notification.actions).toEqual([
    { title: "a" },
    { title: "b" },
    { navigate: "/c" },
  ]);
  const webpush = { fcm_options: { link: bad } };
  expect(fcm({ ...hello, click_action: bad, android: { webpush } }).message).toMatchObject({
    android: { notification: expect.not.objectContaining({ click_action: bad }) },
    webpush: { fcm_options: {} },
  });
});

describe("localizations", () => {
  const content: NotificationContent = {
    ...hello,
    localizations: { de: { title: "Hallo" }, "pt-BR": { title: "Olá", body: "Mundo", link_to: "/noticias" } },
  };
  test.each([
    [undefined, undefined],
    ["de", "de"],
    ["de-AT", "de"],
    ["de_AT", "de"],
    ["DE", "de"],
    ["pt-br", "pt-BR"],
    ["pt", undefined],
    ["fr", undefined],
    ["", undefined],
  ])("a device with locale %j reads %j", (locale, key) => {
    expect(chooseLocalization(content, locale)).toBe(key);
  });

  test("replace only what they name, on every platform", () => {
    expect(apns(content, "de-CH").aps.alert).toEqual({ title: "Hallo", body: "World" });
    expect(fcm(content, "de").message.notification).toEqual({ title: "Hallo", body: "World" });
    expect(web(content, "pt-BR")).toMatchObject({
      notification: { title: "Olá", body: "Mundo" },
      link_to: "/noticias",
    });
    expect(apns(content).aps.alert.title).toBe("Hello");
  });
});

test("whatever the words are, the body is JSON that says them", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary" }), fc.dictionary(fc.string(), fc.string()), (body, data) => {
      fc.pre(!("__proto__" in data) || !Object.hasOwn(data, "__proto__"));
      const content: NotificationContent = { targets: ["all"], body, data };
      expect(apns(content)).toMatchObject({ aps: { alert: { body } }, data });
      expect(fcm(content).message.data).toMatchObject({ notification_id: origin.notificationId });
      expect(web(content)).toMatchObject({ notification: { body }, data });
    }),
  );
});

describe("weight", () => {
  const platforms = ["ios", "android", "web"] as const;
  const sized = (bytes: number): NotificationContent => ({ targets: ["all"], title: "t", body: "x".repeat(bytes) });

  test("the last byte that fits is taken and the next is not, on each platform", () => {
    const room = { ios: 0, android: 0, web: 0 };
    for (const platform of platforms) {
      let fits = 0;
      while (findOversizedPayloads(sized(fits + 1), origin, [platform], 100).length === 0) fits++;
      room[platform] = fits;
    }
    expect(Buffer.byteLength(renderApns(sized(room.ios), origin).body("x".repeat(100)))).toBe(4096);
    expect(Buffer.byteLength(renderWebPush(sized(room.web), origin).body("x".repeat(100)))).toBe(3993);
    expect(room.android).toBeGreaterThan(3500);
  });

  test("of content as small as is not rendered fits each platform, whatever its characters are", () => {
    const openToken = "x".repeat(200);
    const heaviest = (content: NotificationContent) =>
      Math.max(
        Buffer.byteLength(renderApns(content, origin).body(openToken)),
        ...platforms.map((platform) =>
          fcmWeight(renderFcm(content, origin, platform, lifetime).body({ token: "", kind: "token" }, openToken)),
        ),
        Buffer.byteLength(renderWebPush(content, origin).body(openToken)),
      );
    const fields = ["title", "body", "subtitle", "image", "sound", "category", "collapse_id", "link_to"] as const;
    for (const character of ['"', "\\", "\u0001", "ü", "\u{1f600}", "x", "\ud800"])
      for (const fill of [
        ...fields.map((field) => (text: string) => ({ ...sized(1), [field]: text })),
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

  test("is told of three localizations of each platform", () => {
    const languages = Array.from({ length: 10 }, (_, at) => [`en-${at}`, { body: "x".repeat(4_000) }]);
    const content = { ...sized(4_000), data: { a: "x".repeat(300) }, localizations: Object.fromEntries(languages) };
    expect(findOversizedPayloads(content, origin, ["ios", "web"], 100)).toHaveLength(6);
  });

  test("names the platform, the locale and both figures", () => {
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

test("a collapse id that is no topic is hashed", () => {
  expect(webPushTopic("order-42")).toBe("order-42");
  expect(webPushTopic("a".repeat(32))).toBe("a".repeat(32));
  for (const id of ["a".repeat(33), "a b", "order:42", "żółw", ""])
    expect(webPushTopic(id)).toMatch(/^[A-Za-z0-9_-]{32}$/);
  expect(webPushTopic("order:42")).toBe(webPushTopic("order:42"));
  expect(webPushTopic("order:42")).not.toBe(webPushTopic("order:43"));
});
