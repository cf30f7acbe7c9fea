import { expect, test } from "vitest";
import { outcomeOf } from "./webhook-outcome.ts";

test.each([
  [200, "delivered"],
  [204, "delivered"],
  [299, "delivered"],
  [199, "failed"],
  [300, "failed"],
  [302, "failed"],
  [308, "failed"],
  [400, "failed"],
  [404, "failed"],
  [409, "failed"],
  [410, "gone"],
  [411, "failed"],
  [429, "failed"],
  [500, "failed"],
  [503, "failed"],
])("%i: %s", (status, kind) => {
  expect(outcomeOf({ kind: "answered", status, body: "" }).kind).toBe(kind);
});

test("without a response it failed, with the reason", () => {
  expect(outcomeOf({ kind: "unanswered", problem: "ECONNREFUSED" })).toEqual({ kind: "failed", error: "ECONNREFUSED" });
});
