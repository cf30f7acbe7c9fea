import { expect, test } from "vitest";
import { isPlainVariables, Variables } from "./variables.ts";

test.each([
  [{}],
  [{ order: "42", amount: 1.5, paid: true }],
  [{ text: "ü".repeat(600) }],
  [Object.fromEntries(Array.from({ length: 50 }, (_, at) => [`v${at}`, at]))],
])("%j is accepted at a glance, unchanged", (values) => {
  expect(isPlainVariables(values)).toBe(true);
  expect(Variables.parse(values)).toEqual(values);
});

test.each([
  [null],
  [[]],
  ["a"],
  [{ constructor: "a" }],
  [JSON.parse('{ "__proto__": "a" }')],
  [{ user: "a" }],
  [{ Order: "a" }],
  [{ a: null }],
  [{ a: Number.POSITIVE_INFINITY }],
  [{ a: {} }],
  [{ a: "x".repeat(4_096) }],
  [Object.fromEntries(Array.from({ length: 51 }, (_, at) => [`v${at}`, at]))],
])("%j is not accepted", (values) => {
  expect(isPlainVariables(values)).toBe(false);
  expect(Variables.safeParse(values).success).toBe(false);
});

test("texts that may be too long are left to the schema", () => {
  const long = { a: "x".repeat(3_000) };
  expect([isPlainVariables(long), Variables.safeParse(long).success]).toEqual([false, true]);
});
