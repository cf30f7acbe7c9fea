import fc from "fast-check";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { createDeadlines, createRequestQueue } from "./request-queue.ts";

type Item = { order: number; done: boolean };

test("returns the oldest item first and none twice, whatever is added, taken, requeued or settled", () => {
  const step = fc.oneof(
    { weight: 4, arbitrary: fc.constant("add" as const) },
    { weight: 4, arbitrary: fc.constant("take" as const) },
    { weight: 2, arbitrary: fc.nat().map((which) => ({ requeue: which })) },
    { weight: 1, arbitrary: fc.nat().map((which) => ({ settle: which })) },
    { weight: 1, arbitrary: fc.constant("removeDone" as const) },
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 400 }), (steps) => {
      const queue = createRequestQueue<Item>();
      let waiting: Item[] = []; // the model: ascending
      const out: Item[] = [];
      let order = 0;
      for (const action of steps) {
        if (action === "add") {
          const item = { order: order++, done: false };
          queue.add(item);
          waiting.push(item);
        } else if (action === "take") {
          waiting = waiting.filter(({ done }) => !done);
          const expected = waiting.shift();
          expect(queue.take()).toBe(expected);
          if (expected) out.push(expected);
        } else if (action === "removeDone") {
          queue.removeDone();
          waiting = waiting.filter(({ done }) => !done);
          expect(queue.size()).toBe(waiting.length);
        } else if ("requeue" in action && out.length > 0) {
          const [item] = out.splice(action.requeue % out.length, 1);
          if (item === undefined) continue;
          queue.requeue(item);
          waiting = [...waiting, item].sort((a, b) => a.order - b.order);
        } else if ("settle" in action && waiting.length > 0) {
          const item = waiting[action.settle % waiting.length];
          if (item) item.done = true;
        }
      }
    }),
    { numRuns: 500 },
  );
});

test("does not keep what was taken", () => {
  const queue = createRequestQueue<Item>();
  for (let order = 0; order < 5_000; order++) queue.add({ order, done: false });
  for (let order = 0; order < 4_000; order++) expect(queue.take()?.order).toBe(order);
  expect(queue.size()).toBe(1_000);
  for (let order = 4_000; order < 5_000; order++) expect(queue.take()?.order).toBe(order);
  expect(queue.take()).toBeUndefined();
  expect(queue.size()).toBe(0);
});

type Late = { name: string; group: Set<Late> | undefined };
const item = (name: string): Late => ({ name, group: undefined });

beforeEach(() => void vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "Date"] }));
afterEach(() => void vi.useRealTimers());

function setUp(timeoutMs: number) {
  const late: string[] = [];
  const deadlines = createDeadlines<Late>(
    timeoutMs,
    (items) => late.push(...items.map(({ name }) => name)),
    () => Date.now(),
  );
  return { late, deadlines };
}

test("is never early, and late by at most a twentieth", () => {
  const { late, deadlines } = setUp(1_000);
  for (let index = 0; index < 100; index++) {
    deadlines.add(item(`${index}`));
    vi.advanceTimersByTime(7);
  }
  vi.advanceTimersByTime(1_000 - 700 - 1);
  expect(late).toEqual([]);
  vi.advanceTimersByTime(52);
  expect(late[0]).toBe("0");
  vi.advanceTimersByTime(700);
  expect(late).toEqual(Array.from({ length: 100 }, (_, index) => `${index}`));
});

test("forgets what was removed, and keeps no timer when nothing waits", () => {
  const { late, deadlines } = setUp(1_000);
  const [a, b] = [item("a"), item("b")];
  deadlines.add(a);
  deadlines.add(b);
  deadlines.remove(a);
  deadlines.remove(a);
  expect(vi.getTimerCount()).toBe(1);
  vi.advanceTimersByTime(1_100);
  expect(late).toEqual(["b"]);
  expect(vi.getTimerCount()).toBe(0);
  deadlines.add(a);
  expect(vi.getTimerCount()).toBe(1);
  deadlines.stop();
  expect(vi.getTimerCount()).toBe(0);
});
