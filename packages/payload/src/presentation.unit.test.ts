import { type NotificationContent, newNotificationId, newProjectId } from "@herald/contracts";
import { describe, expect, test } from "vitest";
import { renderApns } from "./apns.ts";
import { renderFcm } from "./fcm.ts";
import { renderWebPush } from "./webpush.ts";

const now = new Date();
const origin = { projectId: newProjectId(now), notificationId: newNotificationId(now) };
const lifetime = { ttlSeconds: 60, apnsExpiration: "1900000000" };
const target = { token: "t", kind: "token" } as const;
const hello: NotificationContent = { targets: ["all"], title: "Hello" };
const presented: NotificationContent = {
  ...hello,
  urgency: "time-sensitive",
  relevance: 0.8,
  thread: "order-42",
  android_channel: "orders",
  icon: "https://example.com/icon.png",
};

const aps = (content: NotificationContent, locale?: string) =>
  JSON.parse(renderApns(content, origin).body("T", locale)).aps;
const fcm = (platform: "android" | "ios" | "web", content: NotificationContent, locale?: string) =>
  JSON.parse(renderFcm(content, origin, platform, lifetime).body(target, "T", locale)).message;
const web = (content: NotificationContent, locale?: string) => {
  const { urgency, body } = renderWebPush(content, origin);
  return { urgency, ...JSON.parse(body("T", locale)) };
};

describe("urgency", () => {
  test.each([
    ["passive", "PRIORITY_LOW", "low"],
    ["active", "PRIORITY_DEFAULT", "normal"],
    ["time-sensitive", "PRIORITY_HIGH", "high"],
    ["critical", "PRIORITY_MAX", "high"],
  ] as const)("%s is %s on Android and `Urgency: %s` on the web, whatever the priority", (urgency, android, header) => {
    for (const priority of [undefined, "high", "normal"] as const) {
      const content = { ...hello, urgency, priority };
      expect(aps(content)).toMatchObject({ "interruption-level": urgency });
      expect(fcm("ios", content).apns.payload.aps).toEqual(aps(content));
      expect(fcm("android", content).android).toMatchObject({
        priority: priority === "normal" ? "NORMAL" : "HIGH",
        notification: { notification_priority: android },
      });
      expect(web(content).urgency).toBe(header);
      expect(fcm("web", content).webpush.headers.Urgency).toBe(header);
    }
  });

  test("only a critical alert has its sound as an object, by default the default sound", () => {
    const critical = { ...hello, urgency: "critical" } as const;
    expect(aps(critical).sound).toEqual({ critical: 1, name: "default", volume: 1 });
    expect(aps({ ...critical, sound: "alarm.caf" }).sound).toEqual({ critical: 1, name: "alarm.caf", volume: 1 });
    expect(fcm("android", { ...critical, sound: "alarm" }).android.notification.sound).toBe("alarm");
    expect(aps({ ...hello, urgency: "time-sensitive", sound: "ping.caf" }).sound).toBe("ping.caf");
    expect(aps({ ...hello, urgency: "time-sensitive" })).not.toHaveProperty("sound");
  });

  test("a silent notification ignores it", () => {
    const silent: NotificationContent = { ...presented, urgency: "critical", silent: true };
    expect(aps(silent)).toEqual({ "content-available": 1 });
    expect(fcm("android", silent).android).toEqual({ priority: "NORMAL", ttl: "60s" });
    expect(web(silent).urgency).toBe("normal");
    expect(web(silent)).not.toHaveProperty("notification");
  });
});

test("each field is where its platform reads it, and on no other platform", () => {
  expect(aps(presented)).toEqual({
    alert: { title: "Hello" },
    "thread-id": "order-42",
    "interruption-level": "time-sensitive",
    "relevance-score": 0.8,
  });
  expect(fcm("ios", presented)).toMatchObject({ data: expect.not.objectContaining({ thread: "order-42" }) });
  const { android, data } = fcm("android", presented);
  expect(android.notification).toEqual({
    tag: origin.notificationId,
    channel_id: "orders",
    notification_priority: "PRIORITY_HIGH",
  });
  expect(data).toMatchObject({ thread: "order-42" });
  const shown = { title: "Hello", tag: origin.notificationId, icon: "https://example.com/icon.png" };
  expect(web(presented)).toEqual({
    urgency: "high",
    notification: shown,
    notification_id: origin.notificationId,
    project_id: origin.projectId,
    token: "T",
  });
  expect(fcm("web", presented).webpush.notification).toEqual(shown);
});

test("the least relevance is sent too", () => {
  expect(aps({ ...hello, relevance: 0 })["relevance-score"]).toBe(0);
});

test("a thread goes before a value of `data` with the same name", () => {
  const data = { thread: "own" };
  expect(fcm("android", { ...hello, data }).data.thread).toBe("own");
  expect(fcm("android", { ...hello, data, thread: "order-42" }).data.thread).toBe("order-42");
});

test("overrides are merged over the fields, and localizations keep them", () => {
  const content: NotificationContent = {
    ...presented,
    urgency: "critical",
    localizations: { de: { title: "Hallo" } },
    ios: { aps: { "interruption-level": null, sound: { volume: 0.5 }, "thread-id": "x" } },
    android: { android: { notification: { channel_id: "other", notification_priority: null } } },
    web: { notification: { icon: null } },
  };
  expect(aps(content, "de")).toEqual({
    alert: { title: "Hallo" },
    sound: { critical: 1, name: "default", volume: 0.5 },
    "thread-id": "x",
    "relevance-score": 0.8,
  });
  const { notification } = fcm("android", content, "de").android;
  expect(notification).toEqual({ tag: origin.notificationId, channel_id: "other" });
  expect(web(content, "de").notification).toEqual({ title: "Hallo", tag: origin.notificationId });
});
