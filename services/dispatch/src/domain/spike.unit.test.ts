import { expect, test } from "vitest";
import { isSpike } from "./notification-counts.ts";

test.each([
  [49, 49, false],
  [50, 10, false],
  [50, 11, true],
  [1000, 200, false],
  [1000, 201, true],
  [0, 0, false],
])("of %i answers %i unregistered: spike %s", (total, unregistered, expected) => {
  expect(isSpike({ total, unregistered })).toBe(expected);
});
