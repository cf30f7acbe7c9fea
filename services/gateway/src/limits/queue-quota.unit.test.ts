import { setImmediate } from "node:timers/promises";
import { newProjectId, type ProjectId } from "@herald/contracts";
import { createLogger, HeraldError } from "@herald/kit";
import { beforeEach, expect, test } from "vitest";
import { createQueueQuota, type QueueQuota } from "./queue-quota.ts";

let time: number;
let counted: ProjectId[];
/** The waiting sends. Undefined: the broker is unavailable; unknown: dispatch is unavailable. */
let waiting: number | "unknown" | undefined;
/** Resolves when the next count may be answered. */
let answering: Promise<unknown>;
let quota: QueueQuota;
beforeEach(() => {
  time = 1_000_000;
  counted = [];
  waiting = 0;
  answering = Promise.resolve();
  quota = createQueueQuota({
    limitOf: () => ({ messages: 100, bytes: 10_000 }),
    count: async (projectId) => {
      counted.push(projectId);
      await answering;
      if (waiting === undefined) throw new HeraldError("bus-unavailable", "unavailable");
      return waiting === "unknown" ? undefined : waiting;
    },
    now: () => new Date(time),
    log: createLogger({ service: "test", level: "silent" }),
  });
});

const project = newProjectId(new Date());
const admit = async (times: number, bytes = 10, of = project): Promise<number> => {
  let admitted = 0;
  for (let index = 0; index < times; index++) {
    const refused = await quota.admit(of, bytes).catch((error: unknown) => error);
    if (refused === undefined) admitted++;
    else expect(refused).toMatchObject({ code: "quota-exceeded", retryAfterSeconds: 5 });
  }
  return admitted;
};

test("counts once per tenth of the quota, and at most once a second", async () => {
  await admit(9);
  expect(counted).toEqual([]);
  await admit(1);
  expect(counted).toEqual([project]);
  await admit(50);
  expect(counted).toHaveLength(1);
  time += 1_000;
  await admit(1);
  expect(counted).toHaveLength(2);
});

test("a send waits for a count only if it would be refused without it", async () => {
  const first = Promise.withResolvers<void>();
  answering = first.promise;
  // One count at a time, however long it takes.
  expect(await admit(50)).toBe(50);
  time += 1_000;
  expect(await admit(50)).toBe(50);
  expect(counted).toEqual([project]);
  expect(await admit(1)).toBe(0);
  waiting = 50;
  first.resolve();
  await setImmediate(); // the count is taken
  time += 1_000;
  const second = Promise.withResolvers<void>();
  answering = second.promise;
  waiting = 0;
  const last = admit(1);
  second.resolve();
  expect(await last).toBe(1);
  expect(counted).toHaveLength(2);
});

test("accepts any number of sends that do not wait", async () => {
  for (let second = 0; second < 20; second++) {
    expect(await admit(90)).toBe(90);
    time += 1_000;
  }
});

test("refuses sends beyond the limit until fewer wait, and no other project's", async () => {
  waiting = 95;
  // The tenth send triggers the count and finds room for five, including itself.
  expect(await admit(30)).toBe(14);
  const other = newProjectId(new Date());
  waiting = 0;
  expect(await admit(5, 10, other)).toBe(5);
  expect(await admit(1)).toBe(0);
  time += 1_000;
  expect(await admit(30)).toBe(30);
});

test("refuses bytes beyond the limit too", async () => {
  // Eight sends of 1,000 bytes wait at the count, so there is room for two more.
  expect(await admit(1, 1_000)).toBe(1);
  time += 1_000;
  waiting = 8;
  expect(await admit(5, 1_000)).toBe(2);
});

test("refuses nothing while the broker is unavailable", async () => {
  waiting = undefined;
  for (let second = 0; second < 20; second++) {
    expect(await admit(90)).toBe(90);
    time += 1_000;
  }
});

test("counts all accepted sends as waiting while dispatch is unavailable, and recounts afterwards", async () => {
  waiting = "unknown";
  let admitted = 0;
  for (let second = 0; second < 5; second++) {
    admitted += await admit(50);
    time += 1_000;
  }
  expect(admitted).toBe(100);
  waiting = 0;
  expect(await admit(50)).toBe(50);
});
