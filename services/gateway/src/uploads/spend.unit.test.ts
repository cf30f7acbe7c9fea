import { expect, test } from "vitest";
import { createSpend } from "./spend.ts";

const counting = (delayMs: number, isGone: () => boolean) => {
  const counted: number[] = [];
  const spend = createSpend(async (bytes) => {
    counted.push(bytes);
    return delayMs;
  }, isGone);
  return { counted, spend };
};

test("bytes are counted by the mebibyte", async () => {
  const { counted, spend } = counting(0, () => false);
  for (let n = 0; n < 25; n++) await spend(100_000);
  expect(counted).toEqual([1_100_000, 1_100_000]);
});

test("an upload waits until its project may read again, unless its sender is gone", async () => {
  const begin = performance.now();
  await counting(50, () => false).spend(2_000_000);
  expect(performance.now() - begin).toBeGreaterThan(45);
  await counting(86_400_000, () => true).spend(2_000_000);
});
