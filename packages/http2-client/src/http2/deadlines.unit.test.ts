import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { createDeadlines } from "./deadlines.ts";

type Item = { name: string; group: Set<Item> | undefined };
const item = (name: string): Item => ({ name, group: undefined });

beforeEach(() => void vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "Date"] }));
afterEach(() => void vi.useRealTimers());

function setUp(timeoutMs: number) {
  const late: string[] = [];
  const deadlines = createDeadlines<Item>(
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
