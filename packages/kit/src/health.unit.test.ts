import { expect, test } from "vitest";
import { createHealth } from "./health.ts";

test("ready when every check is true, of whatever kind", async () => {
  const health = createHealth({ now: () => true, later: async () => true });
  expect(await health.failing()).toEqual([]);
});

test("says which check fails, why, and since when it was seen to", async () => {
  let time = new Date("2030-01-01T00:00:00Z");
  let up = true;
  const health = createHealth(
    {
      database: () => up,
      bus: () => (up ? true : "the bus is unavailable"),
      index: async () => {
        if (!up) throw new Error("mongodb://user:password@host");
        return true;
      },
    },
    () => time,
  );
  expect(await health.failing()).toEqual([]);
  up = false;
  const since = time.toISOString();
  await health.failing();
  time = new Date("2030-01-01T00:01:00Z");
  expect(await health.failing()).toEqual([
    { check: "database", since, reason: "it is unavailable" },
    { check: "bus", since, reason: "the bus is unavailable" },
    { check: "index", since, reason: "the check failed" },
  ]);
  up = true;
  expect(await health.failing()).toEqual([]);
  up = false;
  expect((await health.failing())[0]?.since).toBe(time.toISOString());
});

test("a check that hangs is one that fails", async () => {
  const health = createHealth({ stuck: () => new Promise(() => {}) });
  expect(await health.failing()).toMatchObject([{ check: "stuck", reason: "the check does not answer" }]);
});

test("is not ready while it stops", async () => {
  const health = createHealth({ database: () => true });
  health.shuttingDown();
  expect(await health.failing()).toMatchObject([{ check: "shutdown" }]);
});
