import { expect, test } from "vitest";
import { TopicListQuery, TopicName } from "./topics.ts";

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

test.each([
  [{ prefix: "dev" }, true],
  [{ prefix: "." }, true],
  [{ prefix: "" }, false],
  [{ prefix: "a b" }, false],
  [{ prefix: "a", sort: "created_at" }, false],
  [{ prefix: "a", created_after: "2030-01-31T09:00:00Z" }, false],
  [{ prefix: "a", page: "2", per_page: "5" }, true],
])("%j asks for topics: %s", (query, valid) => {
  expect(TopicListQuery.safeParse(query).success).toBe(valid);
});
