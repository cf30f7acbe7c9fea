import { expect, test } from "vitest";
import { TopicName } from "./topics.ts";

test.each([
  ["news", true],
  ["a..b", true],
  ["~", true],
  ["__proto__", true],
  ["x".repeat(128), true],
  [".", false],
  ["..", false],
  ["all", false],
  ["dev_1", false],
  ["top_1", false],
  ["", false],
  ["a b", false],
  ["a/b", false],
  ["news\n", false],
  ["x".repeat(129), false],
])("%j is the name of a topic: %s", (name, valid) => {
  expect(TopicName.safeParse(name).success).toBe(valid);
});
