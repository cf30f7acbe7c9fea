import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { batchOutboxes, type Out } from "./clear-outboxes.ts";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  expect(vi.getTimerCount()).toBe(0);
  vi.useRealTimers();
});

const recorder = () => {
  const cleared: (readonly Out[])[] = [];
  const batcher = batchOutboxes(async (documents) => void cleared.push(documents));
  return { cleared, batcher };
};
const out = (_id: string, entry: string, final = false): Out => ({ _id, projectId: "p", entries: [entry], final });

test("documents whose events are published close together are cleared together", async () => {
  const { cleared, batcher } = recorder();
  batcher.add(out("a", "1"));
  batcher.add(out("b", "2", true));
  expect(cleared).toEqual([]);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(cleared).toEqual([[out("a", "1"), out("b", "2", true)]]);
});

test("all published entries of a document are cleared at once, and a final one marks the whole document", async () => {
  const { cleared, batcher } = recorder();
  batcher.add(out("a", "1"));
  batcher.add(out("a", "2", true));
  batcher.add(out("b", "3", true));
  batcher.add(out("b", "4"));
  await batcher.stop();
  expect(cleared).toEqual([
    [
      { ...out("a", "1", true), entries: ["1", "2"] },
      { ...out("b", "3", true), entries: ["3", "4"] },
    ],
  ]);
});

test("a published entry is remembered until it is cleared", async () => {
  const { batcher } = recorder();
  batcher.add(out("a", "1"));
  expect([batcher.has("a", "1"), batcher.has("a", "2"), batcher.has("b", "1")]).toEqual([true, false, false]);
  await batcher.stop();
  expect(batcher.has("a", "1")).toBe(false);
});

test("a hundred documents do not wait", async () => {
  const { cleared, batcher } = recorder();
  for (let index = 0; index < 100; index++) batcher.add(out(String(index), "x"));
  expect(cleared.map((documents) => documents.length)).toEqual([100]);
  await batcher.stop();
  expect(cleared).toHaveLength(1);
});

test("a stop waits for what is being cleared", async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  let stopped = false;
  const batcher = batchOutboxes(() => promise);
  batcher.add(out("a", "1"));
  const stopping = batcher.stop().then(() => {
    stopped = true;
  });
  await vi.advanceTimersByTimeAsync(1_000);
  expect(stopped).toBe(false);
  resolve();
  await stopping;
});
