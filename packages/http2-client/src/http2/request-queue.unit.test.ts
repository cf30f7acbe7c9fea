import fc from "fast-check";
import { expect, test } from "vitest";
import { createRequestQueue } from "./request-queue.ts";

type Item = { order: number; done: boolean };

test("whatever is added, taken, put back or settled: the oldest comes first, and none twice", () => {
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
