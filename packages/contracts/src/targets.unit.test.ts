import { describe, expect, test } from "vitest";
import { laneOf, parseTarget } from "./targets.ts";

const id = "dev_06bq4ghm31tz5d2ns8y7k9w0ac";

describe("a target", () => {
  test.each([
    ["all", { kind: "all" }],
    [id, { kind: "device", id }],
    [`device:${id}`, { kind: "device", id }],
    ["topic:news", { kind: "topic", name: "news" }],
    ["news", { kind: "topic", name: "news" }],
    ["token:a:b=c", { kind: "token", token: "a:b=c" }],
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

  test("a condition that is not understood says at which of its characters", () => {
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
