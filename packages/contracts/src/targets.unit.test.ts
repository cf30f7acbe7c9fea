import { describe, expect, test } from "vitest";
import { idTime } from "./ids.ts";
import { parseTarget } from "./targets.ts";
import { erasedTarget, erasedUser, UserId } from "./users.ts";

const id = "dev_06bq4ghm31tz5d2ns8y7k9w0ac";

describe("a target", () => {
  test.each([
    ["all", { kind: "all" }],
    [id, { kind: "device", id }],
    [`device:${id}`, { kind: "device", id }],
    ["topic:news", { kind: "topic", name: "news" }],
    ["news", { kind: "topic", name: "news" }],
    ["token:a:b=c", { kind: "token", token: "a:b=c" }],
    [`token:${"0A".repeat(32)}`, { kind: "token", token: "0a".repeat(32) }],
    ["token:https://Push.example:443/A", { kind: "token", token: "https://push.example/A" }],
    ["metadata:plan=pro=plus", { kind: "pair", of: "metadata", path: "plan", value: "pro=plus" }],
    ["metadata:user.id=", { kind: "pair", of: "metadata", path: "user.id", value: "" }],
    ["identifiers:os:v=1", { kind: "pair", of: "identifiers", path: "os:v", value: "1" }],
    [
      "condition:'a.b' in topics || platform == 'ios'",
      {
        kind: "condition",
        condition: {
          kind: "or",
          parts: [
            { kind: "topic", name: "a.b" },
            { kind: "compare", field: { of: "platform" }, operator: "==", value: "ios" },
          ],
        },
      },
    ],
  ])("%j means %j", (source, target) => {
    expect(parseTarget(source)).toEqual({ target: { source, ...target } });
  });

  test.each([
    "",
    "dev_1",
    "device:",
    "device:dev_1",
    "topic:",
    "topic:all",
    "a b",
    "a*b",
    "a>",
    "token:",
    "metadata:x",
    "metadata:=x",
    "foo:bar",
    "condition:",
    "ünicode",
  ])("%j is refused with a reason", (source) => {
    expect(parseTarget(source)).toEqual({ problem: expect.stringMatching(/^is not a target: /) });
  });

  test("a malformed condition is refused with the position of the problem", () => {
    expect(parseTarget("condition:metadata.plan = 'pro'")).toEqual({
      problem: expect.stringMatching(/^is not a target: at character 15: /),
    });
  });
});

describe("users", () => {
  test.each([
    ["user:u_8412", "u_8412"],
    ["user:a:b=c?#%", "a:b=c?#%"],
    [`user:${"u".repeat(128)}`, "u".repeat(128)],
  ])("%s names one", (source, id) => {
    expect(parseTarget(source)).toEqual({ target: { source, kind: "user", id } });
  });

  test.each(["user:", "user:.", "user:..", "user:a/b", "user:a b", "user:ü", `user:${"u".repeat(129)}`])(
    "%s is none",
    (source) => expect(parseTarget(source)).toEqual({ problem: expect.stringContaining("is not a target: a user id") }),
  );

  test("an erased user is replaced by the id of an impossible device", () => {
    expect(parseTarget(erasedTarget)).toMatchObject({ target: { kind: "device" } });
    expect(idTime(erasedTarget.slice("device:".length)).getTime()).toBe(0);
    expect(UserId.safeParse(erasedUser).success).toBe(false);
  });
});
