import { describe, expect, test } from "vitest";
import { RenderedContent, SendNotification } from "./send-notification.ts";
import { PutTemplate } from "./templates.ts";

type Issues = { readonly error?: { readonly issues: readonly { path: PropertyKey[]; message: string }[] } | undefined };
const problems = ({ error }: Issues) =>
  (error?.issues ?? []).map(({ path, message }) => `${path.join(".")}: ${message}`);
const problemsOf = (fields: object): string[] =>
  problems(SendNotification.safeParse({ notification: { title: "Hello", targets: ["all"], ...fields } })).map(
    (problem) => problem.replace(/^notification\./, ""),
  );
const android = (settings: object) => ({ android: { android: settings } });

describe("accepted:", () => {
  test.each([
    {
      data: {
        notification: "1",
        collapse_key: "2",
        form: "3",
        From: "4",
        "x.google": "5",
        googleMapsUrl: "8",
        gcm_id: "9",
        tokens: "6",
        APS: "7",
      },
    },
    { data: { link_to: "/a", thread: "t", buttons: "b", app_badge: "1" } },
    { ios: { aps: { alert: { subtitle: "S" }, badge: null }, custom: { token: 1 }, data: { n: 1 }, image: null } },
    { ios: { from: "Ada" } },
    { android: { notification: null, android: null, data: null } },
    { android: { data: { order: "42", gone: null }, fcm_options: { analytics_label: "spring-2030_a.b~c%" } } },
    android({
      ttl: "3.5s",
      priority: "normal",
      collapse_key: "c",
      direct_boot_ok: true,
      restricted_package_name: "a.b",
    }),
    android({
      notification: { color: "#3366fF", notification_count: 0, visibility: "PRIVATE", sticky: true, sound: null },
    }),
    android({ notification: { notification_priority: null, channel_id: "other", body_loc_args: ["a"] } }),
    { android: { webpush: { headers: { Urgency: "low" } }, apns: { payload: { aps: {} } } } },
    { web: { notification: { requireInteraction: true, data: { order: 1 } }, extra: { token: 1 } } },
    { web: { notification: null, data: { a: { b: 1 } } } },
  ])("%j", (fields) => expect(problemsOf(fields)).toEqual([]));
});

describe("what FCM refuses is refused with the key's path:", () => {
  const names = ["from", "message_type", "gcm.x", "gcm.notification.title", "google.x", "google.c.a.e"];
  test.each(names)("the name %s", (name) => {
    const by = [
      expect.stringMatching(/^data\..*FCM refuses/),
      expect.stringMatching(/^ios\.data\..*FCM refuses/),
      expect.stringMatching(/^android\.data\..*FCM refuses/),
      expect.stringMatching(/^web\..*FCM refuses/),
      expect.stringMatching(/^web\.data\..*FCM refuses/),
    ];
    const data = { [name]: "1" };
    expect(problemsOf({ data, ios: { data }, android: { data }, web: { ...data, data } })).toEqual(by);
    expect(problemsOf({ data })[0]).toContain(`data.${name}: `);
    expect(problems(RenderedContent.safeParse({ title: "Hello", data }))).toHaveLength(1);
    expect(problems(PutTemplate.safeParse({ template: { title: "Hello", data } }))).toEqual([
      expect.stringContaining(`template.data.${name}: `),
    ]);
  });

  test.each<[string, object]>([
    ["android.data.n", { android: { data: { n: 1 } } }],
    ["android.data", { android: { data: "x" } }],
    ["android.notification", { android: { notification: "x" } }],
    ["android.notification.title", { android: { notification: { title: 1 } } }],
    ["android.notificaton", { android: { notificaton: {} } }],
    ["android.android.channel_id", android({ channelId: "x" })],
    ["android.android", { android: { android: [] } }],
    ["android.android.ttl", android({ ttl: 3600 })],
    ["android.android.ttl", android({ ttl: "1h" })],
    ["android.android.ttl", android({ ttl: "2419201s" })],
    ["android.android.priority", android({ priority: "urgent" })],
    ["android.android.direct_boot_ok", android({ direct_boot_ok: "true" })],
    ["android.android.notification.color", android({ notification: { color: "red" } })],
    [
      "android.android.notification.notification_priority",
      android({ notification: { notification_priority: "HIGH" } }),
    ],
    ["android.android.notification.notification_count", android({ notification: { notification_count: -1 } })],
    ["android.android.notification.visibility", android({ notification: { visibility: "public" } })],
    ["android.android.notification.event_time", android({ notification: { event_time: "tomorrow" } })],
    [
      "android.android.notification.light_settings.light_on_duration",
      android({ notification: { light_settings: { color: {}, light_on_duration: 1 } } }),
    ],
    ["android.android.notification.channel", android({ notification: { channel: "x" } })],
    // One field in both spellings, of which FCM would refuse the second.
    ["android.android.notification.channelId", android({ notification: { channelId: "x", channel_id: "y" } })],
    ["android.fcm_options.analytics_label", { android: { fcm_options: { analytics_label: "spring 2030" } } }],
    ["android.android.fcm_options.analytics_label", android({ fcm_options: { analytics_label: "x".repeat(51) } })],
    ["android.webpush.headers.TTL", { android: { webpush: { headers: { TTL: 60 } } } }],
    ["android.apns.headers.apns-priority", { android: { apns: { headers: { "apns-priority": 10 } } } }],
    ["web.notification", { web: { notification: "Hello" } }],
  ])("%s", (path, fields) => expect(problemsOf(fields)).toEqual([expect.stringMatching(`^${path}: (must|is not)`)]));
});

test.each([null, "x", []])("a payload without the object `aps`, which APNs refuses, is refused: %j", (aps) =>
  expect(problemsOf({ ios: { aps } })).toEqual([expect.stringMatching(/^ios\.aps: must be a JSON object/)]),
);

describe("what Herald would write over is reserved:", () => {
  test.each<[string, object]>([
    ...["token", "notification_id", "project_id", "receipt", "herald", "aps"].flatMap((name): [string, object][] => [
      [`data.${name}`, { data: { [name]: "x" } }],
      [`ios.data.${name}`, { ios: { data: { [name]: 1 } } }],
      [`android.data.${name}`, { android: { data: { [name]: "x" } } }],
      [`web.data.${name}`, { web: { data: { [name]: "x" } } }],
    ]),
    ...["token", "notification_id", "project_id", "receipt", "buttons"].flatMap((name): [string, object][] => [
      [`ios.${name}`, { ios: { [name]: "x" } }],
      [`web.${name}`, { web: { [name]: { a: 1 } } }],
    ]),
    ...["token", "fid", "topic", "condition"].map((name): [string, object] => [
      `android.${name}`,
      { android: { [name]: "x" } },
    ]),
    ["android.android.data", android({ data: { a: "b" } })],
    ["web.web_push", { web: { web_push: 1 } }],
    ["web.notification.data.notification_id", { web: { notification: { data: { notification_id: "x" } } } }],
  ])("%s", (path, fields) => expect(problemsOf(fields)).toEqual([expect.stringMatching(`^${path}: is reserved`)]));

  test.each<[string, object]>([
    ["link_to", { data: { link_to: "/a" }, link_to: "/b" }],
    ["link_to", { data: { link_to: "/a" }, localizations: { de: { link_to: "/b" } } }],
    ["thread", { data: { thread: "a" }, thread: "b" }],
    ["app_badge", { data: { app_badge: "1" }, badge: 2 }],
    ["buttons", { data: { buttons: "x" }, buttons: [{ id: "a", title: "A" }] }],
  ])("data.%s beside the field of the notification", (name, fields) =>
    expect(problemsOf(fields)).toEqual([expect.stringMatching(`^data\\.${name}: is set by .* too`)]),
  );
});

test("a field of FCM's message may have either spelling of protobuf's JSON, and is stored in one", () => {
  const own = { myKey: "1" };
  const sent = {
    data: own,
    fcmOptions: { analyticsLabel: "spring" },
    android: { collapseKey: "c", notification: { channelId: "news", notificationPriority: "PRIORITY_HIGH" } },
    webpush: { notification: { requireInteraction: true }, fcmOptions: { link: "https://example.com/" } },
  };
  const { data } = SendNotification.safeParse({ notification: { title: "Hello", targets: ["all"], android: sent } });
  expect(data?.notification).toMatchObject({
    android: {
      data: own,
      fcm_options: { analytics_label: "spring" },
      android: { collapse_key: "c", notification: { channel_id: "news", notification_priority: "PRIORITY_HIGH" } },
      webpush: { notification: { requireInteraction: true }, fcm_options: { link: "https://example.com/" } },
    },
  });
});
