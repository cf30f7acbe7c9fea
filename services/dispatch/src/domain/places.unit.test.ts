import { expect, test } from "vitest";
import { placesOf, placesOfBatch } from "./places.ts";

test.each([
  [0, 1],
  [1, 1],
  [7, 1],
  [8, 2],
  [250, 32],
  [500, placesOfBatch],
  [10_000, placesOfBatch],
])("a batch of %i devices takes %i places", (devices, places) => {
  expect(placesOf(devices)).toBe(places);
});
