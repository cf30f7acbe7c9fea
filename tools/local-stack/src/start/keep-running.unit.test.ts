import { expect, test, vi } from "vitest";
import { type Ending, keepRunning, type Part } from "./keep-running.ts";

/** A part that ends when the test says so. */
function scripted(failStarts: readonly number[] = []) {
  const ends: ((ending: Ending) => void)[] = [];
  const stopped: number[] = [];
  let starts = 0;
  const part: Part = {
    name: "part",
    start: async () => {
      starts += 1;
      const number = starts;
      if (failStarts.includes(number)) throw new Error(`start ${number} failed`);
      let end: (ending: Ending) => void = () => {};
      const ended = new Promise<Ending>((resolve) => {
        end = resolve;
      });
      ends.push(end);
      const stop = async () => {
        stopped.push(number);
        end({ why: "stopped", again: true });
      };
      return { pids: [number], ended, stop };
    },
  };
  return { part, stopped, starts: () => starts, end: (ending: Ending) => ends.at(-1)?.(ending) };
}

function listener() {
  const heard: string[] = [];
  return {
    heard,
    on: {
      end: (why: string) => heard.push(`end: ${why}`),
      start: () => heard.push("start"),
      hopeless: (why: string) => heard.push(`hopeless: ${why}`),
    },
  };
}

test("a part that ends is started again, also when a start fails", async () => {
  const { part, end, starts } = scripted([2]);
  const { heard, on } = listener();
  const kept = await keepRunning(part, on);
  expect(kept.pids()).toEqual([1]);
  end({ why: "killed", again: true });
  await vi.waitFor(() => expect(heard).toEqual(["end: killed", "end: start 2 failed", "start"]), { timeout: 20_000 });
  expect(kept.pids()).toEqual([3]);
  await kept.stop();
  expect(starts()).toBe(3);
});

test("a part that a start will not help stays down", async () => {
  const { part, end, starts } = scripted();
  const { heard, on } = listener();
  const kept = await keepRunning(part, on);
  end({ why: "wrong", again: false });
  await vi.waitFor(() => expect(heard).toEqual(["end: wrong", "hopeless: wrong"]), { timeout: 20_000 });
  await kept.stop();
  expect(starts()).toBe(1);
});

test("a part that is stopped stays down and is not reported", async () => {
  const { part, starts, stopped } = scripted();
  const { heard, on } = listener();
  const kept = await keepRunning(part, on);
  await kept.stop();
  expect(stopped[0]).toBe(1);
  expect(starts()).toBe(1);
  expect(heard).toEqual([]);
});

test("a first start that fails is the caller's to know", async () => {
  const { part } = scripted([1]);
  await expect(keepRunning(part, listener().on)).rejects.toThrow("start 1 failed");
});

test("what somebody else runs never ends, and is left at once", async () => {
  let stops = 0;
  const part: Part = {
    name: "elsewhere",
    start: async () => ({ pids: [], ended: new Promise<never>(() => {}), stop: async () => void stops++ }),
  };
  const { heard, on } = listener();
  const kept = await keepRunning(part, on);
  await kept.stop();
  expect(stops).toBeGreaterThan(0);
  expect(heard).toEqual([]);
});
