import { describe, expect, test } from "vitest";
import { idTime } from "./ids.ts";
import {
  allHaveFewDevices,
  isPersonal,
  laneOf,
  maxSmallAudience,
  parseTarget,
  personKeysOf,
  usersOf,
} from "./targets.ts";
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

  test.each([
    [[id, `token:abc`], "direct"],
    [[id, "news"], "broadcast"],
    [["all"], "broadcast"],
    [["metadata:a=b"], "broadcast"],
    [[id, "condition:platform == 'ios'"], "broadcast"],
  ])("%j goes through the lane %s", (targets, lane) => {
    expect(laneOf(targets)).toBe(lane);
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

  test("are listed once, are separable, and make a notification personal", () => {
    expect(usersOf(["user:a", "news", "user:b", "user:a", "metadata:user:c=1"])).toEqual(["a", "b"]);
    expect(laneOf(["user:a", "token:x"])).toBe("direct");
    expect(laneOf(["user:a", "news"])).toBe("broadcast");
    for (const targets of [["user:a"], ["all", "token:x"], ["metadata:n=1"], ["condition:metadata.n == '1'"]])
      expect(isPersonal(targets), targets.join()).toBe(true);
    expect(isPersonal(["all", "news", "topic:sport"])).toBe(false);
  });

  test("an erased user is replaced by the id of an impossible device", () => {
    expect(parseTarget(erasedTarget)).toMatchObject({ target: { kind: "device" } });
    expect(idTime(erasedTarget.slice("device:".length)).getTime()).toBe(0);
    expect(UserId.safeParse(erasedUser).success).toBe(false);
  });
});

test.each([
  [["token:x", "user:a", "metadata:plan=pro", "identifiers:crm=7"], true],
  [["user:a", "news"], false],
  [["all"], false],
  [["condition:topic:news"], false],
  [["metadata:"], false],
  [Array(maxSmallAudience).fill("user:a"), true],
  [Array(maxSmallAudience + 1).fill("user:a"), false],
])("whether %j promise few devices", (targets, few) => {
  expect(allHaveFewDevices(targets)).toBe(few);
});

test("an erasure finds a push token however a target spells it", () => {
  const keysOf = (token: string) => personKeysOf("prj_06bq4ghm31tz5d2ns8y7k9w0ac", [`token:${token}`]);
  expect(keysOf("0A".repeat(32))).toEqual(keysOf("0a".repeat(32)));
  expect(keysOf("fA:APA91b")).not.toEqual(keysOf("fa:apa91b"));
});
