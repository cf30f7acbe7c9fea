import { type Condition, type DeviceTime, type Literal, parseCondition } from "@herald/contracts";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { candidateClauses, evaluateCondition, type Subject } from "./evaluate-condition.ts";

const parsed = (source: string): Condition => {
  const result = parseCondition(source);
  if ("problem" in result) throw new Error(result.problem);
  return result.condition;
};

type Facts = {
  app?: string;
  topics?: string[];
  metadata?: Record<string, Literal>;
  identifiers?: Record<string, Literal>;
  times?: Partial<Record<DeviceTime, number>>;
};
const now = Date.parse("2030-01-31T09:00:00Z");
const day = 86_400_000;
const subject = ({ app, topics = [], metadata = {}, identifiers = {}, times }: Facts): Subject => ({
  platform: "ios",
  app,
  inTopic: (name) => topics.includes(name),
  value: (of, path) => (of === "metadata" ? metadata : identifiers)[path],
  exists: (of, path) => Object.hasOwn(of === "metadata" ? metadata : identifiers, path),
  time: (field) => times?.[field],
  now,
});

describe("a condition", () => {
  const device = subject({
    topics: ["news", "sport"],
    metadata: {
      plan: "pro",
      age: 9,
      "user.id": "u1",
      vip: true,
      zip: "0123",
      sdk_version: "nightly",
      build: "1.10.0",
      host: "a.b.example",
      balance: 2.1,
    },
    identifiers: { app_version: "2.10", "os.name": "iOS" },
  });
  test.each([
    ["'news' in topics", true],
    ['"news" in topics', true],
    ["'muted' in topics", false],
    ["'news' in topics && !('muted' in topics) && metadata.plan == 'pro'", true],
    ["'muted' in topics || 'sport' in topics", true],
    ["'a' in topics || 'b' in topics && 'news' in topics", false],
    ["('a' in topics || 'news' in topics) && 'sport' in topics", true],
    ["!!('news' in topics)", true],
    ["metadata.age == 9", true],
    ["metadata.age == '9'", true],
    ["metadata.age < 10", true],
    ["metadata.age >= 10", false],
    ["metadata.age > -1", true],
    ["metadata.zip == '0123'", true],
    ["metadata.zip == 123", false],
    ["metadata.zip <= 123", true],
    ["metadata.plan < 'q'", true],
    ["metadata.plan > 'pro'", false],
    ["metadata.vip == true", true],
    ["metadata.vip != false", true],
    ["metadata.user.id == 'u1'", true],
    ["metadata.plan in ['team', 'pro']", true],
    ["metadata.age in [1, 2]", false],
    ["identifiers.os.name == 'iOS'", true],
    ["identifiers.app_version >= '2.9'", true],
    ["identifiers.app_version > 2.9", true],
    ["identifiers.app_version == 2.10", true],
    ["identifiers.app_version == '2.10.0'", true],
    ["identifiers.app_version != '2.10.0'", false],
    ["identifiers.app_version in ['2.9', '2.10.0']", true],
    ["identifiers.app_version in ['2.1', 'beta']", false],
    ["identifiers.app_version > '2.10-beta'", true],
    ["identifiers.app_version == '2.10+4711'", true],
    ["identifiers.app_version < '2.11.0-rc.1'", true],
    ["identifiers.app_version == 'dev'", false],
    ["identifiers.app_version != 'dev'", true],
    ["identifiers.app_version < 'dev'", false],
    ["identifiers.app_version >= 'dev'", false],
    ["metadata.sdk_version > '9.0'", false],
    ["metadata.sdk_version != '9.0'", true],
    ["metadata.sdk_version == 'nightly'", true],
    ["metadata.build > '1.9.0'", true],
    ["metadata.build == '1.10.0.0'", true],
    ["metadata.build > '1.9'", false],
    ["metadata.host == 'a.b.example'", true],
    ["metadata.host < 'a.c.example'", true],
    ["metadata.balance > 2.5", false],
    ["metadata.balance > '2.5'", false],
    ["metadata.balance < 2.5", true],
    ["platform == 'ios'", true],
    ["platform in ['android', 'web']", false],
    ["metadata.none == 'x'", false],
    ["metadata.none != 'x'", true],
    ["metadata.none < 5", false],
    ["!(metadata.none < 5)", true],
    ["metadata.plan == 'it\\'s'", false],
  ])("%s is %s", (source, truth) => {
    expect(evaluateCondition(parsed(source), device)).toBe(truth);
  });

  test("accepted by an older gateway is parsed, however many clauses it has", () => {
    const names = Array.from({ length: 10_000 }, (_, index) => `t${index}`);
    const condition = parsed(names.map((name) => `'${name}' in topics`).join(" || "));
    expect(evaluateCondition(condition, subject({ topics: ["t9999"] }))).toBe(true);
  });
});

describe("a time of a device", () => {
  test.each([
    ["last_seen_at > '-30d'", 30 * day - 1, true],
    ["last_seen_at > '-30d'", 30 * day, false],
    ["last_seen_at >= '-30d'", 30 * day, true],
    ["last_seen_at <= '-30d'", 30 * day, true],
    ["last_seen_at < '-2w'", 14 * day + 1, true],
    ["last_seen_at < '-36h'", 1.5 * day, false],
    ["last_seen_at > '-90m'", 5_399_999, true],
    ["last_seen_at > '2030-01-30T10:00:00+01:00'", day - 1, true],
    ["last_seen_at > '2030-01-30T09:00:00Z'", day, false],
    ["!(last_seen_at > '-1d') && 'a' in topics", 2 * day, true],
    ["last_opened_at > '-30d'", 30 * day - 1, false],
  ])("%s of one %i ms ago is %s", (source, ago, truth) => {
    expect(evaluateCondition(parsed(source), subject({ topics: ["a"], times: { last_seen_at: now - ago } }))).toBe(
      truth,
    );
  });

  test("is not another one", () => {
    const device = subject({ times: { last_seen_at: now - 2 * day, last_opened_at: now - 40 * day } });
    const truths = ["last_opened_at < '-30d'", "last_seen_at > '-3d'", "!(last_opened_at > '-30d')"];
    for (const source of truths) expect(evaluateCondition(parsed(source), device), source).toBe(true);
  });

  test.each(["last_seen_at > '-30d'", "last_seen_at < '-30d'", "last_opened_at < '-30d'"])(
    "%s is false of a device without one",
    (source) => {
      expect(evaluateCondition(parsed(source), subject({}))).toBe(false);
    },
  );
});

describe("whether a field exists", () => {
  test.each([
    ["exists(metadata.plan)", true],
    ["exists( identifiers.os.name )", true],
    ["exists(metadata.os.name)", false],
    ["!exists(metadata.trial) && exists(metadata.plan)", true],
  ])("%s is %s", (source, truth) => {
    const device = subject({ metadata: { plan: "pro" }, identifiers: { "os.name": "iOS" } });
    expect(evaluateCondition(parsed(source), device)).toBe(truth);
  });
});

describe("candidates", () => {
  const topic = (name: string) => ({ kind: "topic", name });
  const pair = (path: string, value: string) => ({ kind: "pair", of: "metadata", path, value });
  test.each([
    ["'a' in topics", [topic("a")]],
    ["'a' in topics || 'b' in topics", [topic("a"), topic("b")]],
    ["('a' in topics || 'b' in topics) && metadata.x == 1", [pair("x", "1")]],
    ["metadata.x in ['p', 'q']", [pair("x", "p"), pair("x", "q")]],
    ["'a' in topics && !('b' in topics)", [topic("a")]],
    ["!('a' in topics)", undefined],
    ["'a' in topics || metadata.x > 1", undefined],
    ["platform == 'ios'", undefined],
    ["metadata.x != 1", undefined],
    ["exists(metadata.x)", undefined],
    ["last_seen_at > '-1d'", undefined],
    ["'a' in topics && last_seen_at > '-1d' && exists(metadata.x)", [topic("a")]],
    ["metadata.x == '1.2.3'", undefined],
    ["identifiers.app_version == '2.10'", undefined],
    ["identifiers.app_version in ['2.10', '2.11']", undefined],
    ["'a' in topics && identifiers.app_version == '2.10'", [topic("a")]],
  ])("of %s", (source, clauses) => {
    expect(candidateClauses(parsed(source))).toEqual(clauses);
  });

  test("include every device that matches the condition", () => {
    const names = ["a", "b", "c"] as const;
    const leaf = fc.oneof(
      fc.constantFrom(...names).map((name): Condition => ({ kind: "topic", name })),
      fc.tuple(fc.constantFrom("==", "!=", "<"), fc.nat(2)).map(
        ([operator, value]): Condition => ({
          kind: "compare",
          field: { of: "metadata", path: "x" },
          operator: operator as "==",
          value,
        }),
      ),
    );
    const { condition } = fc.letrec<{ condition: Condition }>((tie) => ({
      condition: fc.oneof(
        { maxDepth: 4 },
        leaf,
        tie("condition").map((part): Condition => ({ kind: "not", part })),
        fc
          .tuple(fc.constantFrom("and", "or"), fc.array(tie("condition"), { minLength: 1, maxLength: 3 }))
          .map(([kind, parts]): Condition => ({ kind: kind as "and", parts })),
      ),
    }));
    fc.assert(
      fc.property(condition, fc.subarray([...names]), fc.option(fc.nat(2), { nil: undefined }), (one, topics, x) => {
        const device = subject({ topics, ...(x === undefined ? {} : { metadata: { x } }) });
        const clauses = candidateClauses(one);
        fc.pre(clauses !== undefined && evaluateCondition(one, device));
        const covered = clauses?.some((clause) =>
          clause.kind === "topic" ? topics.includes(clause.name as "a") : String(x) === clause.value,
        );
        expect(covered).toBe(true);
      }),
      { numRuns: 2000 },
    );
  });
});
