import { HeraldError } from "@herald/client";
import { expect, test } from "vitest";
import { emptyDraft } from "./draft.ts";
import { composeProblems } from "./problems.ts";

const refused = (...problems: [pointer: string, detail: string][]) =>
  new HeraldError("validation-failed", "refused", {
    status: 422,
    problems: problems.map(([pointer, detail]) => ({ pointer: `#/notification/${pointer}`, detail, code: "invalid" })),
  });

test("each problem stands in one place: beside its field, or above them", () => {
  const error = refused(
    ["title", "line 1, column 10: `order` is not among the variables `number`"],
    ["variables/number", "is required by the template"],
    ["variables/colour", "is not a variable of the template; it has `number`"],
    ["targets/1", "is not a target: a device id is `dev_` and 26 characters"],
    ["ttl", "must be at most 2419200"],
  );
  const variables = [{ name: "number", type: "string", fallback: "", text: "" }];
  const { of, fields, others } = composeProblems(error, { ...emptyDraft, variables, targets: ["all", "dev_1"] });
  expect(fields).toEqual(["Title", "number", "Targets"]);
  expect(others).toEqual(["variables › colour: The template has no such variable", "ttl: must be at most 2419200"]);
  expect(of("title")).toBe("Line 1, column 10: there is no variable order");
  expect(of("variables/number")).toBe("The template needs a value");
  expect(of("targets")).toBe("dev_1 is not a target: a device id is dev_ and 26 characters");
  expect(of("body")).toBeUndefined();
});

test("a problem of a rollout stands beside the part that it is about", () => {
  const error = refused(
    ["rollout/canary/share", "must be from 1/4096 to 0.5"],
    ["rollout", "cannot be set beside `recipients`: send to `targets`"],
  );
  const { of, fields, others } = composeProblems(error, emptyDraft);
  expect(fields).toEqual(["Begin with"]);
  expect(of("rollout/canary/share")).toBe("Between 0.025 % and 50 %");
  expect(of("rollout/canary/wait")).toBeUndefined();
  expect(others).toEqual(["rollout: needs targets, not recipients"]);
});

test("one sentence about two places of a field is said once", () => {
  const problem: [string, string] = ["title", "line 1, column 1: `a` is not among the variables"];
  expect(composeProblems(refused(problem, problem), emptyDraft).of("title")).toBe(
    "Line 1, column 1: there is no variable a",
  );
});

test("what is no problem of the form has no place in it", () => {
  const gone = new HeraldError("unreachable", "no answer");
  expect(composeProblems(gone, emptyDraft)).toMatchObject({ fields: [], others: [] });
});
