import { expect, test } from "vitest";
import { isAtLeast } from "./run-command.ts";

test.each([
  ["2.12.0", "2.12", true],
  ["2.15.2", "2.12", true],
  ["2.9.24", "2.12", false],
  ["3.0", "2.12", true],
  ["6.0.9", "7.0", false],
  ["7.0.0", "7.0", true],
  ["8.2.6", "7.0", true],
])("%s is at least %s: %s", (version, minimum, expected) => {
  expect(isAtLeast(version, minimum)).toBe(expected);
});
