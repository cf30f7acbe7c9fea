import { type NotificationContent, newNotificationId, newProjectId } from "@herald/contracts";
import { describe, expect, test } from "vitest";
import { renderFcm } from "./fcm.ts";

const now = new Date();
const origin = { projectId: newProjectId(now), notificationId: newNotificationId(now) };
const own = { notification_id: origin.notificationId, project_id: origin.projectId, token: "T" };
const hello: NotificationContent = { targets: ["all"], title: "Hello", body: "World", link_to: "/news" };
const lifetime = { ttlSeconds: 60, apnsExpiration: "1900000000" };
const target = { token: 'a"b', kind: "token" } as const;

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
        headers: { TTL: "60", Urgency: "high", Topic: expect.stringMatching(/^[\w-]{32}$/) },
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

  test("a path in the app is not used as FCM's link, which must be https", () => {
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
