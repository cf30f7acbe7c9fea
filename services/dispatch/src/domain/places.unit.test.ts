import { expect, test } from "vitest";
import { placesOf, placesOfBatch } from "./places.ts";

test.each([
  [0, 1],
  [1, 1],
  [15, 1],
  [16, 2],
  [500, 32],
  [1_000, placesOfBatch],
  [10_000, placesOfBatch],
])("a batch of %i devices takes %i places", (devices, places) => {
  expect(placesOf(devices)).toBe(places);
});
