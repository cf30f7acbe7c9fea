import { type NotificationContent, newNotificationId, newProjectId } from "@herald/contracts";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { anyText } from "../test/any-text.ts";
import { renderDeclarative } from "./declarative.ts";
import { findOversizedPayloads, surelyFitsSiteBytes } from "./find-oversized-payloads.ts";
import { renderWebPush } from "./webpush.ts";

const now = new Date();
const origin = { projectId: newProjectId(now), notificationId: newNotificationId(now) };
const ids = { notification_id: origin.notificationId, project_id: origin.projectId };
const site = "https://shop.example.com";
const hello: NotificationContent = { targets: ["all"], title: "Hello", body: "World" };

const bodyOf = (content: NotificationContent, locale?: string) =>
  renderDeclarative(content, origin, site)("T.o-k_en", locale);
const declared = (content: NotificationContent, locale?: string) => JSON.parse(bodyOf(content, locale) ?? "null");
const navigate = (content: Partial<NotificationContent>) => declared({ ...hello, ...content })?.notification.navigate;
const mark = `herald=${origin.notificationId}.T.o-k_en`;

test("one body has what the browser shows by itself, and what a worker reads", () => {
  const content: NotificationContent = {
    ...hello,
    link_to: "/orders/42",
    image: "https://example.com/i.png",
    icon: "https://example.com/icon.png",
    badge: 3,
    collapse_id: "c",
    data: { order: "42" },
  };
  const ordinary = JSON.parse(renderWebPush(content, origin).body("T.o-k_en"));
  expect(declared(content)).toEqual({
    ...ordinary,
    web_push: 8030,
    notification: {
      ...ordinary.notification,
      app_badge: 3,
      data: ids,
      navigate: `${site}/orders/42#${mark}`,
    },
  });
  expect(ordinary).toMatchObject({ app_badge: 3, link_to: "/orders/42", data: { order: "42" }, token: "T.o-k_en" });
});

describe("a click opens", () => {
  test.each([
    ["the site without a link", undefined, `/#${mark}`],
    ["a path", "/a?b=c", `/a?b=c#${mark}`],
    ["a URL of the site", `${site}/a`, `/a#${mark}`],
    ["the site for a link into a phone's app", "shop://orders/42", `/#${mark}`],
    ["a path with a fragment, which stays the fragment", "/a#b", `/a?${mark}#b`],
    ["a path with a query and a fragment", "/a?b=c#d?e", `/a?b=c&${mark}#d?e`],
    ["a path with an empty fragment", "/a#", `/a?${mark}#`],
    ["a path with characters that URLs and JSON escape", '/ü "x"\\?q="\\', `/%C3%BC%20%22x%22/?q=%22\\#${mark}`],
  ])("%s", (_, linkTo, expected) => {
    expect(navigate({ link_to: linkTo })).toBe(site + expected);
  });

  test("what an override says, as an absolute URL with the mark", () => {
    expect(navigate({ link_to: "/a", web: { notification: { navigate: "/b" } } })).toBe(`${site}/b#${mark}`);
    expect(navigate({ link_to: "/a", web: { link_to: "/c" } })).toBe(`${site}/c#${mark}`);
  });

  test.each(["https://other.example/a", "http://shop.example.com/a", "https://shop.example.com:8443/a"])(
    "%s only through the worker: another site would read the token and could not report the open",
    (linkTo) => expect(bodyOf({ ...hello, link_to: linkTo })).toBeUndefined(),
  );
});

describe("left to the worker is", () => {
  test.each<[string, Partial<NotificationContent>]>([
    ["a notification without a title", { title: undefined }],
    ["a silent one", { silent: true }],
    ["one whose override removes the notification", { web: { notification: null } }],
    ...Object.entries({
      title: "",
      body: 4,
      tag: 5,
      lang: {},
      dir: "up",
      icon: "/icon.png",
      silent: "yes",
      mutable: 1,
      app_badge: -1,
      actions: [],
    }).map(([name, value]): [string, Partial<NotificationContent>] => [
      `one whose override sets ${name} to ${JSON.stringify(value)}, for which WebKit drops a push`,
      { web: { notification: { [name]: value } } },
    ]),
  ])("%s", (_, fields) => {
    expect(bodyOf({ ...hello, ...fields })).toBeUndefined();
  });
});

test("an override may set the other fields of the browser, and cannot change the identity", () => {
  const web = {
    notification: { lang: "de", dir: "ltr", silent: true, mutable: true, app_badge: "7", data: { own: 1, ...ids } },
    web_push: 1,
    token: "x",
    project_id: "x",
  };
  expect(declared({ ...hello, web })).toMatchObject({
    ...{ web_push: 8030, token: "T.o-k_en", ...ids },
    notification: { lang: "de", dir: "ltr", silent: true, mutable: true, app_badge: "7", data: { own: 1, ...ids } },
  });
});

test("each localization decides for itself", () => {
  const content: NotificationContent = {
    ...hello,
    localizations: { de: { title: "Hallo", link_to: "/de" }, fr: { link_to: "https://other.example/" } },
  };
  expect(declared(content, "de").notification).toMatchObject({ title: "Hallo", navigate: `${site}/de#${mark}` });
  expect(bodyOf(content, "fr")).toBeUndefined();
  expect(declared(content).notification.title).toBe("Hello");
});

test("it is JSON with the same text, whatever its characters are", () => {
  const part = fc.string({ unit: fc.constantFrom(..."aZ0-._~!$&'()*+,;=:@/?", "%20", "%C3%A9") });
  fc.assert(
    fc.property(anyText({ minLength: 1 }), part, part, (title, path, fragment) => {
      const { notification, token } = declared({ ...hello, title, link_to: `/x${path}#${fragment}` });
      expect(notification.title).toBe(title);
      expect(token).toBe("T.o-k_en");
      expect(new URL(notification.navigate).searchParams.get("herald")).toBe(mark.slice("herald=".length));
    }),
    { numRuns: 200 },
  );
});

describe("weight", () => {
  const problems = (content: NotificationContent, of?: string) =>
    findOversizedPayloads(content, origin, ["web"], 100, of);

  test("the last byte that fits Safari is accepted, and the next is not", () => {
    const sized = (bytes: number) => ({ ...hello, body: "x".repeat(bytes) });
    let fits = 3_000;
    while (problems(sized(fits + 1), site).length === 0) fits++;
    expect(Buffer.byteLength(renderDeclarative(sized(fits), origin, site)("x".repeat(100)) ?? "")).toBe(3_993);
    expect(problems(sized(fits + 1), site)).toEqual([
      expect.stringMatching(/^notification: renders to 3994 bytes for web on Safari, at most 3993 fit/),
    ]);
    expect(problems(sized(fits + 1))).toEqual([]);
  });

  test("content small enough to skip rendering fits, whatever its characters are and however long the site is", () => {
    const longest = `https://${"x".repeat(63)}.${"y".repeat(63)}.${"z".repeat(63)}.${"w".repeat(55)}`;
    for (const character of ['"', "\\", "ü", "\u{1f600}", "x", "%", " "])
      for (const field of ["title", "body", "link_to", "thread"] as const) {
        let content: NotificationContent = hello;
        for (let length = 1; ; length += 3) {
          const text = character.repeat(length);
          const longer = { ...hello, [field]: field === "link_to" ? `/a${text}` : text };
          if (Buffer.byteLength(JSON.stringify(longer)) > surelyFitsSiteBytes) break;
          content = longer;
        }
        const body = renderDeclarative(content, origin, longest)("x".repeat(200));
        expect(Buffer.byteLength(body ?? ""), JSON.stringify(content)).toBeGreaterThan(500);
        expect(Buffer.byteLength(body ?? ""), JSON.stringify(content)).toBeLessThanOrEqual(3_993);
      }
  });
});
