import { describe, expect, test } from "vitest";
import { audienceOfContent } from "./commands.ts";
import { NewNotification } from "./http/v1/send-notification.ts";
import { fromPushKey, pushKeyOf } from "./push-types.ts";

const problems = (notification: object): string[] =>
  (NewNotification.safeParse({ targets: ["all"], ...notification }).error?.issues ?? []).map(
    ({ path, message }) => `${path.join(".")}: ${message}`,
  );

describe("a send with a push type", () => {
  test("needs neither title nor body", () => {
    expect(problems({ push_type: "voip" })).toEqual([]);
    expect(
      problems({ push_type: "controls", push_name: "gate", data: { a: "b" }, ios: { aps: {} }, app: "a.b" }),
    ).toEqual([]);
  });

  test.each([
    ["title", "Hello"],
    ["body", "Hello"],
    ["silent", true],
    ["silent", false],
    ["badge", 1],
    ["sound", "ping"],
    ["android", {}],
    ["localizations", { de: { title: "Hallo" } }],
  ])("refuses %s, which it would not use", (field, value) => {
    expect(problems({ push_type: "voip", [field]: value })).toEqual([
      `${field}: cannot be combined with \`push_type\`: put what the app needs into \`data\` or \`ios\``,
    ]);
  });

  test("is the same for all its devices", () => {
    expect(problems({ push_type: "voip", template: "call" })).toEqual([
      "template: cannot be combined with `push_type`",
    ]);
    const recipients = [{ target: "user:u_1" }];
    expect(problems({ push_type: "voip", targets: undefined, recipients })).toEqual([
      "recipients: cannot be combined with `push_type`",
    ]);
  });

  test("names a control, and nothing else", () => {
    expect(problems({ push_type: "controls" })).toEqual([
      "push_name: is required for controls: the kind of the control",
    ]);
    expect(problems({ push_type: "voip", push_name: "gate" })).toEqual(["push_name: is only for controls"]);
    expect(problems({ title: "Hello", push_name: "gate" })).toEqual(["push_name: is only for controls"]);
    for (const wrong of ["", "a/b", "..", "a\r\nb", "x".repeat(65)])
      expect(problems({ push_type: "controls", push_name: wrong })).toEqual([expect.stringMatching(/^push_name: /)]);
  });

  test.each(["liveactivity", "mdm", "alert", "__proto__"])("knows no type %s", (pushType) => {
    expect(problems({ push_type: pushType })).toEqual(expect.arrayContaining([expect.stringMatching(/^push_type: /)]));
  });
});

test("the key of a token names its type and the kind of a control", () => {
  expect(pushKeyOf({ push_type: "voip" })).toBe("voip");
  expect(pushKeyOf({})).toBeUndefined();
  const gate = pushKeyOf({ push_type: "controls", push_name: "a.gate" }) ?? "";
  expect(fromPushKey(gate)).toEqual({ type: "controls", name: "a.gate" });
  expect(fromPushKey("voip")).toEqual({ type: "voip" });
});

test("the audience of a plain send is its targets alone", () => {
  expect(audienceOfContent({ targets: ["all"] })).toStrictEqual({ targets: ["all"] });
  expect(audienceOfContent({ targets: ["all"], app: "a.b", push_type: "controls", push_name: "gate" })).toEqual({
    ...{ targets: ["all"], app: "a.b", push: "controls/gate" },
  });
});
