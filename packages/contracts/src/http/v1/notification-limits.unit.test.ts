import { describe, expect, test } from "vitest";
import { NotificationContent } from "./notification-content.ts";
import { notificationLimits } from "./notification-limits.ts";
import { SendNotification } from "./send-notification.ts";

const problemsOf = (fields: object): string[] => {
  const notification = { title: "Hello", targets: ["all"], ...fields };
  const { error } = SendNotification.safeParse({ notification });
  return (error?.issues ?? []).map(({ path, message }) => `${path.slice(1).join(".")}: ${message}`);
};

const topics = (count: number) =>
  `condition:${Array.from({ length: count }, (_, at) => `'t${at}' in topics`).join(" || ")}`;

describe("clauses of a notification's targets", () => {
  test("are accepted up to the limit, over all targets", () => {
    expect(problemsOf({ targets: [topics(100), "news", topics(100)] })).toEqual([]);
  });

  test.each<[string, string[], string]>([
    ["one condition", [topics(201)], "targets.0"],
    ["several", [topics(150), "news", topics(51)], "targets.2"],
    ["values of a list", [`condition:metadata.a in [${Array(201).fill(1)}]`], "targets.0"],
    ["values of a list of versions", [`condition:metadata.a in ['1.0.0',${Array(200).fill(1)}]`], "targets.0"],
    [
      "values that no index holds",
      Array.from({ length: 201 }, (_, at) => `metadata:a=${"x".repeat(257)}${at}`),
      "targets.200",
    ],
    ["the same again and again", Array(201).fill("condition:platform == 'ios'"), "targets.200"],
  ])("above it are refused once, at the entry that is too many: %s", (_, targets, path) => {
    expect(problemsOf({ targets })).toEqual([expect.stringMatching(`^${path}: .*at most 200 are accepted`)]);
  });

  test("beyond the limit do not hide other invalid entries", () => {
    const targets = [topics(201), "condition:nonsense", "no topic", "metadata:x"];
    expect(problemsOf({ targets }).map((problem) => problem.split(":")[0])).toEqual([
      "targets.0",
      "targets.2",
      "targets.3",
    ]);
  });

  test("of a thousand topics and pairs are none", () => {
    const targets = Array.from({ length: 1_000 }, (_, at) => (at % 2 ? `t${at}` : `metadata:a=${at}`));
    expect(problemsOf({ targets })).toEqual([]);
  });

  test("are not counted on the bus: what an older gateway accepted is sent", () => {
    expect(NotificationContent.safeParse({ title: "Hello", targets: [topics(150), topics(150)] }).success).toBe(true);
  });
});

describe("a notification's content", () => {
  const { contentBytes } = notificationLimits;
  const envelope = JSON.stringify({ title: "Hello", web: { a: "" } }).length;

  test("is accepted up to the limit, in bytes of JSON without its targets", () => {
    const targets = Array.from({ length: 1_000 }, (_, at) => `token:${"f".repeat(160)}${at}`);
    expect(problemsOf({ targets, web: { a: "x".repeat(contentBytes - envelope) } })).toEqual([]);
    expect(problemsOf({ web: { a: "x".repeat(contentBytes - envelope + 1) } })).toEqual([
      `web: has ${contentBytes - 18} of the notification's ${contentBytes + 1} bytes of JSON without its targets, and at most 65536 are accepted`,
    ]);
    expect(problemsOf({ web: { a: "ü".repeat(contentBytes / 2) } })).toHaveLength(1);
  });

  test("that is too large is refused with its largest field", () => {
    const localizations = { de: { body: "x".repeat(4_000) }, fr: { body: "x".repeat(4_000) } };
    const fields = { localizations, android: { a: "x".repeat(30_000) }, ios: { a: "x".repeat(40_000) } };
    expect(problemsOf(fields)).toEqual([expect.stringMatching(/^ios: has 40013 of /)]);
  });

  test("that is too large is not validated further", () => {
    const languages = Array.from({ length: 20_000 }, (_, at) => [`!${at}`, 1]);
    expect(problemsOf({ localizations: Object.fromEntries(languages), ios: 1 })).toHaveLength(1);
    expect(problemsOf({ data: Object.fromEntries(languages), ios: 1 })).toEqual([expect.stringMatching(/^data: has /)]);
    expect(problemsOf({ targets: Array(60_000).fill(1) })).toEqual(["targets: at most 1000 targets are accepted"]);
    expect(problemsOf({ ["x".repeat(70_000)]: 1 })).toEqual([expect.stringMatching(/^: has 70003 of /)]);
  });

  test("has a limit of localizations", () => {
    const languages = (count: number) =>
      Object.fromEntries(Array.from({ length: count }, (_, at) => [`en-${at}`, { title: "Hi" }]));
    expect(problemsOf({ localizations: languages(100) })).toEqual([]);
    expect(problemsOf({ localizations: languages(101) })).toEqual(["localizations: at most 100 are accepted, not 101"]);
  });

  test.each([
    ["link_to", { link_to: "javascript:x" }],
    ["localizations.de.link_to", { localizations: { de: { link_to: "//a.example" } } }],
    ["data.link_to", { data: { link_to: "data:x" } }],
    ["android.data.link_to", { android: { data: { link_to: "vbscript:x" } } }],
    ["click_action", { click_action: "javascript:x" }],
    ["ios.link_to", { ios: { link_to: " JavaScript:x" } }],
    ["ios.aps.navigate", { ios: { aps: { navigate: "blob:x" } } }],
    [
      "android.android.notification.click_action",
      { android: { android: { notification: { click_action: "data:x" } } } },
    ],
    ["android.webpush.fcm_options.link", { android: { webpush: { fcm_options: { link: "//a.example" } } } }],
    ["web.notification.navigate", { web: { notification: { navigate: "/\\a.example" } } }],
    [
      "web.notification.actions.1.navigate",
      { web: { notification: { actions: [{ navigate: "/a" }, { navigate: "//b.example" }] } } },
    ],
    ["web.link_to", { web: { link_to: ["javascript:x"] } }],
  ])("%s may not be dangerous, but on the bus", (path, fields) => {
    expect(problemsOf(fields)).toEqual([expect.stringMatching(`^${path}: may not begin with`)]);
    expect(NotificationContent.safeParse({ title: "Hello", targets: ["all"], ...fields }).success).toBe(true);
  });
});
