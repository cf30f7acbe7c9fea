import { type NotificationContent, newNotificationId, newProjectId } from "@herald/contracts";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { anyText } from "../test/any-text.ts";
import { renderApns } from "./apns.ts";
import { renderFcm } from "./fcm.ts";
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

describe("a push type of Apple", () => {
  const push = { targets: ["all"], data: { call: "17" } };

  test.each([
    ["voip", ".voip", {}],
    ["complication", ".complication", {}],
    ["widgets", ".push-type.widgets", { "content-changed": true }],
    ["controls", ".push-type.controls", { "content-changed": true }],
    ["location", ".location-query", {}],
    ["fileprovider", ".pushkit.fileprovider", {}],
    ["pushtotalk", ".voip-ptt", {}],
  ] as const)("%s has the topic ending %s and the aps %j", (pushType, topicEnding, aps) => {
    expect(renderApns({ ...push, push_type: pushType }, origin)).toMatchObject({ pushType: pushType, topicEnding });
    expect(apns({ ...push, push_type: pushType })).toEqual({ aps, data: { call: "17" }, ...own });
  });

  test("takes its payload from `ios` too", () => {
    const ios = { aps: { "ptt-push-type": "service-update" }, activeSpeaker: "Ada" };
    expect(apns({ ...push, push_type: "pushtotalk", ios })).toEqual({ ...ios, data: { call: "17" }, ...own });
  });
});

describe("APNs", () => {
  test("contains title and body in `aps`, and the fields for an open beside it", () => {
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
    [{ push_type: "voip" }, "voip", 10],
    [{ push_type: "location", priority: "normal" }, "location", 5],
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
  test("contains title and body, and the fields for an open as data", () => {
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

  test("a silent push contains only data", () => {
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

test("the collapse id is the tag, or else the notification id, so that a repeat is shown once", () => {
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

test.each([
  { link_to: "javascript:alert(1)" },
  { click_action: "javascript:alert(1)" },
  { click_action: "", link_to: "javascript:alert(1)" },
  { data: { link: "javascript:alert(1)" } },
  { localizations: { de: { link_to: "javascript:alert(1)" } } },
])("nor does the only one of a notification: %j", (fields) => {
  const content: NotificationContent = { targets: ["all"], title: "Hello", ...fields };
  for (const render of [apns, fcm, web]) expect(JSON.stringify(render(content, "de"))).not.toContain("javascript");
});

describe("localizations", () => {
  const content: NotificationContent = {
    ...hello,
    localizations: { de: { title: "Hallo" }, "pt-BR": { title: "Olá", body: "Mundo", link_to: "/noticias" } },
  };
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

test("the payload is JSON with the same text, whatever its characters are", () => {
  fc.assert(
    fc.property(anyText(), fc.dictionary(fc.string(), fc.string()), (body, data) => {
      fc.pre(!("__proto__" in data) || !Object.hasOwn(data, "__proto__"));
      const content: NotificationContent = { targets: ["all"], body, data };
      expect(apns(content)).toMatchObject({ aps: { alert: { body } }, data });
      expect(fcm(content).message.data).toMatchObject({ notification_id: origin.notificationId });
      expect(web(content)).toMatchObject({ notification: { body }, data });
    }),
  );
});

test("a collapse id that is not a valid topic is hashed", () => {
  expect(webPushTopic("order-42")).toBe("order-42");
  expect(webPushTopic("a".repeat(32))).toBe("a".repeat(32));
  for (const id of ["a".repeat(33), "a b", "order:42", "żółw", ""])
    expect(webPushTopic(id)).toMatch(/^[A-Za-z0-9_-]{32}$/);
  // Apple decodes a topic, and no base64url has these lengths.
  for (const id of ["order-1234567", "c", "score", "a".repeat(29)])
    expect(webPushTopic(id)).toMatch(/^[A-Za-z0-9_-]{32}$/);
  expect(webPushTopic("order:42")).toBe(webPushTopic("order:42"));
  expect(webPushTopic("order:42")).not.toBe(webPushTopic("order:43"));
});
