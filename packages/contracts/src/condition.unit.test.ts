import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type Condition, clausesOf, parseCondition } from "./condition.ts";

const parsed = (source: string): Condition => {
  const result = parseCondition(source);
  if ("problem" in result) throw new Error(result.problem);
  return result.condition;
};

describe("a condition", () => {
  test.each([
    ["", 1, "expected 'topic' in topics"],
    ["'news'", 7, "expected `in topics`, found the end"],
    ["'news' in metadata.x", 11, "expected `topics`"],
    ["'two words' in topics", 1, "a topic's name must be 1 to 128"],
    ["'news' in topics &&", 20, "found the end"],
    ["'news' in topics & 'x' in topics", 18, "`&` is not part of the language"],
    ["'news in topics", 1, "this quote is not closed"],
    ["('news' in topics", 18, "expected `)`"],
    ["'a' in topics 'b' in topics", 15, "expected && or || or the end"],
    ["plan == 'pro'", 1, "`plan` is not a field"],
    ["metadata == 'pro'", 1, "`metadata` is not a field"],
    ["metadata.plan = 'pro'", 15, "`=` is not part of the language"],
    ["metadata.plan == pro", 18, "expected a value"],
    ["metadata.plan in 'pro'", 18, "expected `[`"],
    ["metadata.plan in []", 19, "expected a value"],
    ["metadata.plan ~ 'pro'", 15, "`~` is not part of the language"],
    ["!", 2, "found the end"],
    ["5 == metadata.age", 1, "expected 'topic' in topics"],
    [`${"(".repeat(51)}'a' in topics`, 52, "nested more than 50 deep"],
  ])("%s is refused, and the error points at the character", (source, at, message) => {
    const result = parseCondition(source);
    expect(result).toEqual({ problem: expect.stringContaining(`at character ${at}: `) });
    expect(result).toEqual({ problem: expect.stringContaining(message) });
  });

  test("has as many clauses as fit into its text", () => {
    const names = Array.from({ length: 10_000 }, (_, index) => `t${index}`);
    expect(clausesOf(parsed(names.map((name) => `'${name}' in topics`).join(" || ")))).toBe(10_000);
  });

  test.each([
    ["'a' in topics", 1],
    ["!('a' in topics) && (platform == 'ios' || metadata.x < 1)", 3],
    ["metadata.x in [1, 2, 3]", 3],
    ["identifiers.app_version in ['1.0', '2.0'] && platform in ['ios']", 3],
  ])("%s has %i clauses", (source, count) => {
    expect(clausesOf(parsed(source))).toBe(count);
  });

  test("is parsed or refused without throwing, for any text", () => {
    const words = [
      "'a'",
      "in",
      "topics",
      "&&",
      "||",
      "!",
      "(",
      ")",
      "metadata.x",
      "==",
      "<",
      "1",
      "[",
      "]",
      ",",
      "true",
    ];
    const pieces = fc.array(fc.oneof(fc.constantFrom(...words), fc.string()), { maxLength: 12 });
    fc.assert(
      fc.property(pieces, (parts) => {
        const result = parseCondition(parts.join(" "));
        expect("condition" in result || "problem" in result).toBe(true);
      }),
      { numRuns: 2000 },
    );
  });
});

describe("the times of a device", () => {
  test.each([
    ["last_opened_at == '-30d'", 16, "expected < <= > or >=, found `==`"],
    ["last_seen_at == '-30d'", 14, "expected < <= > or >=, found `==`"],
    ["last_seen_at in ['-30d']", 14, "expected < <= > or >="],
    ["last_seen_at > 30", 16, "expected a quoted time: '-30d'"],
    ["last_seen_at > '30d'", 16, "expected a quoted time"],
    ["last_seen_at > '-30s'", 16, "expected a quoted time"],
    ["last_seen_at > '2030-01-30'", 16, "expected a quoted time"],
    ["last_seen_at >", 15, "expected a quoted time"],
  ])("%s is refused at character %i", (source, at, problem) => {
    expect(parseCondition(source)).toMatchObject({
      problem: expect.stringContaining(`at character ${at}: ${problem}`),
    });
  });
});

describe("whether a field exists", () => {
  test.each([
    ["exists metadata.plan", 8, "expected `(`"],
    ["exists(plan)", 8, "`plan` is not a field"],
    ["exists(platform)", 8, "every device has a platform"],
    ["exists(metadata.plan", 21, "expected `)`"],
    ["exists('news')", 8, "is not a field"],
  ])("%s is refused at character %i", (source, at, problem) => {
    expect(parseCondition(source)).toMatchObject({ problem: expect.stringContaining(problem) });
    expect(parseCondition(source)).toMatchObject({ problem: expect.stringContaining(`at character ${at}:`) });
  });
});
