import { type Condition, parseCondition } from "@herald/contracts";
import { describe, expect, test } from "vitest";
import { neededPaths } from "./paths.ts";

const condition = (source: string): Condition => {
  const parsed = parseCondition(source);
  if ("problem" in parsed) throw new Error(parsed.problem);
  return parsed.condition;
};

describe("the fields that conditions read", () => {
  test.each<[string[], string[]]>([
    [["platform == 'ios'"], []],
    [["'a' in topics && !('b' in topics)"], ["facets"]],
    [
      ["metadata.a == 1 || identifiers.b in [1, 2]", "metadata.a > 2"],
      ["metadata.a", "identifiers.b"],
    ],
    [["metadata.a.b == 1 || metadata.a == 1 || metadata.ab == 1"], ["metadata.a", "metadata.ab"]],
    [["metadata.$where == 1 && !(metadata.a.$gt == 1)"], []],
  ])("%j: %j", (sources, paths) => {
    expect(neededPaths(sources.map(condition))).toEqual(paths);
  });
});
