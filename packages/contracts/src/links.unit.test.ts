import { describe, expect, test } from "vitest";
import { dangerousLinks, isWholeUrl, linkProblem, withoutDangerousLinks } from "./links.ts";

describe("a link", () => {
  test.each([
    "javascript:alert(1)",
    "JAVASCRIPT:alert(1)",
    "  javascript:alert(1)",
    "\u00a0javascript:alert(1)",
    "java\u200bscript:alert(1)",
    "javascript :alert(1)",
    "javascript%3Aalert(1)",
    "%6aavascript:alert(1)",
    "%256aavascript:alert(1)",
    "java%0Ascript:alert(1)",
    "data:text/html,x",
    "vbscript:x",
    "blob:https://a.example/1",
  ])("%j may not begin with that scheme", (link) => {
    expect(linkProblem(link)).toMatch(/^may not begin with `javascript:`/);
  });

  test.each([
    "//a.example",
    "///a.example",
    " //a.example",
    "/\\a.example",
    "\\\\a.example",
    "\\/a.example",
    "/%2fa.example",
    "/%5Ca.example",
    "%2F%2Fa.example",
    "/%25252fa.example",
    "/%09/a.example",
    "/ /a.example",
  ])("%j leads to another host", (link) => {
    expect(linkProblem(link)).toMatch(/^may not begin with `\/\/`/);
  });

  test.each(["/a\tb", "/a\nb", "https://a.example/\r", "\u0000/a", "/a\u007f"])("%j has control characters", (link) => {
    expect(linkProblem(link)).toMatch(/^may not contain control characters/);
  });

  test.each([
    "/",
    "/news/42",
    "/news//42",
    "/redirect?to=//a.example",
    "/search?q=javascript:alert(1)",
    "/100%",
    "https://a.example/x%2F%2Fy",
    "https://a.example/data:x",
    "myapp://orders/7",
    "mailto:a@b.example",
    "data-plan:x",
    "OPEN_ORDER",
    "",
  ])("%j is good", (link) => {
    expect(linkProblem(link)).toBeUndefined();
  });
});

const bad = "javascript:x";

test("a whole URL is one for every reader, not for `URL` alone", () => {
  const whole = [
    "https://example.com",
    "HTTPS://example.com/a?b=%20#c",
    "shop://orders/42",
    "mailto:a@example.com",
    "tel:+49",
  ];
  const partial = ["https:example.com", "https:/example.com", "https:///example.com", "http:\\\\example.com"];
  const broken = ["https://example.com/a\\b", "example.com", ""];
  expect(whole.filter((text) => !isWholeUrl(text))).toEqual([]);
  expect([...partial, ...broken].filter(isWholeUrl)).toEqual([]);
});

describe("links in a payload", () => {
  test("are found wherever they stand, by the fields that are opened on a tap", () => {
    const payload = {
      link_to: bad,
      title: bad,
      data: { link_to: "/a", note: "//not a link" },
      notification: { actions: [{ navigate: "/a" }, { navigate: "//b" }], click_action: bad },
      fcm_options: { link: bad },
    };
    expect(dangerousLinks(payload).map(({ path }) => path.join("."))).toEqual([
      "link_to",
      "notification.actions.1.navigate",
      "notification.click_action",
      "fcm_options.link",
    ]);
  });

  test.each([[[bad]], [[[bad]]], [["//b"]], [["/%2fb"]]])(
    "are found in the list %j, which JavaScript opens as its text",
    (list) => {
      expect(dangerousLinks({ a: { navigate: list } })).toMatchObject([{ path: ["a", "navigate"] }]);
      expect(withoutDangerousLinks({ a: { navigate: list } })).toEqual({ a: {} });
    },
  );

  test("are found in objects inside of lists", () => {
    expect(dangerousLinks({ link: [{ navigate: bad }, "/a"] })).toMatchObject([{ path: ["link", 0, "navigate"] }]);
  });

  test("are left out, and nothing else is", () => {
    const payload = { link_to: bad, a: [{ link: "//b", c: 1 }, "x", null], data: { link_to: "/a" } };
    expect(withoutDangerousLinks(payload)).toEqual({ a: [{ c: 1 }, "x", null], data: { link_to: "/a" } });
  });
});
