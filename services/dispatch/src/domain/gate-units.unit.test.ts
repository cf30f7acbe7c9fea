import { expect, test } from "vitest";
import { unitsOf, unitsOfBatch } from "./gate-units.ts";

test.each([
  [0, 1],
  [1, 1],
  [15, 1],
  [16, 2],
  [500, 32],
  [1_000, unitsOfBatch],
  [10_000, unitsOfBatch],
])("a batch of %i devices takes %i places", (devices, places) => {
  expect(unitsOf(devices)).toBe(places);
});
