import { expect, test } from "vitest";
import { allHaveFewDevices, isPersonal, laneOf, maxSmallAudience, personKeysOf, usersOf } from "./reach.ts";

const id = "dev_06bq4ghm31tz5d2ns8y7k9w0ac";

test.each([
  [[id, `token:abc`], "direct"],
  [[id, "news"], "broadcast"],
  [["all"], "broadcast"],
  [["metadata:a=b"], "broadcast"],
  [[id, "condition:platform == 'ios'"], "broadcast"],
])("%j goes through the lane %s", (targets, lane) => {
  expect(laneOf(targets)).toBe(lane);
});

test("users are listed once, are separable, and make a notification personal", () => {
  expect(usersOf(["user:a", "news", "user:b", "user:a", "metadata:user:c=1"])).toEqual(["a", "b"]);
  expect(laneOf(["user:a", "token:x"])).toBe("direct");
  expect(laneOf(["user:a", "news"])).toBe("broadcast");
  for (const targets of [["user:a"], ["all", "token:x"], ["metadata:n=1"], ["condition:metadata.n == '1'"]])
    expect(isPersonal(targets), targets.join()).toBe(true);
  expect(isPersonal(["all", "news", "topic:sport"])).toBe(false);
});

test.each([
  [["token:x", "user:a", "metadata:plan=pro", "identifiers:crm=7"], true],
  [["user:a", "news"], false],
  [["all"], false],
  [["condition:topic:news"], false],
  [["nothing:x"], false],
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
