import { expect, test } from "vitest";
import { createBackoff } from "./backoff.ts";

test("doubles with every failure up to its longest pause, less up to a half", () => {
  const longest = createBackoff({ firstMs: 100, maxMs: 1_000 }, () => 1);
  const shortest = createBackoff({ firstMs: 100, maxMs: 1_000 }, () => 0);
  const pauses = [longest, shortest].map((backoff) =>
    Array.from({ length: 6 }, () => {
      backoff.failed(5_000, "unavailable");
      return backoff.nextAt - 5_000;
    }),
  );
  expect(pauses).toEqual([
    [100, 200, 400, 800, 1_000, 1_000],
    [50, 100, 200, 400, 500, 500],
  ]);
});

test("starts over after a success", () => {
  const backoff = createBackoff({ firstMs: 100, maxMs: 1_000 }, () => 1);
  backoff.failed(0, "refused");
  backoff.failed(0, "unavailable");
  expect([backoff.failures, backoff.reason, backoff.nextAt]).toEqual([2, "unavailable", 200]);
  backoff.succeeded();
  expect([backoff.failures, backoff.reason, backoff.nextAt]).toEqual([0, "", 0]);
  backoff.failed(1_000, "again");
  expect(backoff.nextAt).toBe(1_100);
});
