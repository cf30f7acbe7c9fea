import { HeraldError } from "@herald/client";
import { expect, test } from "vitest";
import { namedSentences, problemsOf, retryAfterMs } from "./problems.ts";

test.each([
  ["a refused request is not made again", new HeraldError("validation-failed", "no", { status: 422 }), false],
  ["a 503 without a time passes soon", new HeraldError("service-unavailable", "no", { status: 503 }), 3_000],
  ["a request without an answer is made again soon", new HeraldError("unreachable", "no"), 3_000],
  ["a 429 says when", new HeraldError("quota-exceeded", "no", { status: 429, retryAfter: 41 }), 41_000],
  [
    "a 429 for a moment is not asked at once",
    new HeraldError("rate-limited", "no", { status: 429, retryAfter: 1 }),
    3_000,
  ],
])("%s", (_title, error, expected) => {
  expect(retryAfterMs(error)).toBe(expected);
});

test("a problem without a field belongs to no field", () => {
  const problem = { detail: "dry runs: at most 60 in 60 s are accepted here", code: "quota-exceeded" };
  const error = new HeraldError("quota-exceeded", problem.detail, { status: 429, problems: [problem] });
  expect(problemsOf(error, "#/notification/title")).toBeUndefined();
});

test("people see each problem once, with its field in words, without the fields that show it themselves", () => {
  const undeclared = { detail: "`n` is not declared", code: "undeclared" };
  const problems = [
    { ...undeclared, pointer: "#/template/title" },
    { ...undeclared, pointer: "#/template/data/order_id" },
    { detail: "is required", code: "required", pointer: "#/private_key" },
    { ...undeclared, pointer: "#/template/data/order_id" },
    { detail: "too many", code: "too-many" },
  ];
  const error = new HeraldError("validation-failed", "no", { status: 422, problems });
  const others = ["Data › order id: `n` is not declared", "Private key: is required", "too many"];
  expect(namedSentences(error, [])).toEqual(["Title: `n` is not declared", ...others]);
  expect(namedSentences(error, ["#/template/title"])).toEqual(others);
});
