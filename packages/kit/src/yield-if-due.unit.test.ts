import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { createYieldIfDue } from "./yield-if-due.ts";

/** A clock that stands while nothing computes: a busy machine may suspend the process for longer than a slice. */
let now = 0;
beforeEach(() => void vi.spyOn(performance, "now").mockImplementation(() => now));
afterEach(() => void vi.restoreAllMocks());

/** Work that blocks the process for `ms`. */
const compute = (ms: number) => {
  now += ms;
};

test("a computation that has had its slice lets others of the process run, and one that has not goes on", async () => {
  const yieldIfDue = createYieldIfDue();
  expect(yieldIfDue()).toBeUndefined();
  compute(11);
  let others = 0;
  setImmediate(() => others++);
  await yieldIfDue();
  expect(others).toBe(1);
  expect(yieldIfDue()).toBeUndefined();
});

test("of many computations one goes on in each turn of the event loop", async () => {
  let turns = 0;
  let counting = true;
  const count = () => {
    turns++;
    if (counting) setImmediate(count);
  };
  setImmediate(count);
  await Promise.all(
    Array.from({ length: 8 }, async () => {
      const yieldIfDue = createYieldIfDue();
      compute(11);
      await yieldIfDue();
    }),
  );
  counting = false;
  expect(turns).toBeGreaterThanOrEqual(8);
});
