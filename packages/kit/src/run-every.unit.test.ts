import { createLogger, HeraldError } from "@herald/kit";
import { eventually } from "@herald/testing";
import { expect, test } from "vitest";
import { runEvery } from "./run-every.ts";

const logged = () => {
  const lines: { level: string; msg: string }[] = [];
  const destination = { write: (line: string) => void lines.push(JSON.parse(line)) };
  return { lines, log: createLogger({ service: "test", level: "info", destination }) };
};

test("runs again after a failure, and says so unless something is unavailable", async () => {
  const { lines, log } = logged();
  let runs = 0;
  const periodic = runEvery("test", 1, log, async () => {
    runs++;
    if (runs === 1) throw new HeraldError("database-unavailable", "unavailable");
    if (runs === 2) throw new Error("a fault");
  });
  await eventually(() => expect(runs).toBeGreaterThan(3));
  await periodic.stop();
  expect(lines).toMatchObject([{ level: "error", what: "test", err: { message: "a fault" } }]);
});

test("a stop aborts what runs, waits for it, and nothing runs afterwards", async () => {
  const { lines, log } = logged();
  let ended = false;
  let runs = 0;
  const periodic = runEvery("test", 1, log, async (signal) => {
    runs++;
    await new Promise<void>((resolve) => signal.addEventListener("abort", () => setImmediate(resolve)));
    ended = true;
    throw new Error("interrupted");
  });
  await periodic.stop();
  expect([ended, runs, lines]).toEqual([true, 1, []]);
});

test("runNow runs the task at once, but never twice at a time", async () => {
  const { log } = logged();
  let runs = 0;
  let end = () => {};
  const periodic = runEvery("test", 3_600_000, log, async () => {
    runs++;
    await new Promise<void>((resolve) => {
      end = resolve;
    });
  });
  periodic.runNow();
  expect(runs).toBe(1);
  for (const wanted of [2, 3]) {
    end();
    await eventually(() => {
      periodic.runNow();
      expect(runs).toBe(wanted);
    });
  }
  periodic.runNow();
  expect(runs).toBe(3);
  const stopped = periodic.stop();
  end();
  await stopped;
  periodic.runNow();
  expect(runs).toBe(3);
});
