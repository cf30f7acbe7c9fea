import { type FreshDatabase, freshDatabase } from "@herald/testing";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createPositionStore } from "./position-store.ts";

let database: FreshDatabase;
beforeAll(async () => {
  database = await freshDatabase();
});
afterAll(() => database.drop());

test.each<[string, [position: number, first: number, last: number, lost: number][]]>([
  ["a new durable has lost nothing, whatever is gone", [[0, 50, 90, 0]]],
  [
    "what goes behind a durable is none of its",
    [
      [80, 1, 90, 0],
      [85, 70, 100, 0],
      [85, 86, 100, 0],
    ],
  ],
  [
    "what was gone before the durable had it is lost, and told once",
    [
      [80, 1, 90, 0],
      [80, 101, 200, 20],
      [80, 101, 200, 0],
      [150, 101, 200, 0],
      [150, 161, 300, 10],
    ],
  ],
  [
    "a stream that was recreated counts from its beginning",
    [
      [80, 1, 90, 0],
      [3, 1, 5, 0],
      [3, 11, 20, 7],
    ],
  ],
])("%s", async (durable, steps) => {
  const positions = createPositionStore(database.client.db(database.name));
  for (const [position, first, last, lost] of steps)
    expect(await positions.advance(durable, position, { first, last })).toBe(lost);
});

test("one of several processes reports a loss", async () => {
  const positions = createPositionStore(database.client.db(database.name));
  await positions.advance("shared", 10, { first: 1, last: 20 });
  const told = await Promise.all(
    Array.from({ length: 4 }, () => positions.advance("shared", 10, { first: 16, last: 20 })),
  );
  expect(told.toSorted()).toEqual([0, 0, 0, 5]);
});
