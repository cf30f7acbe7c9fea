import { newProjectId, type ProjectId } from "@herald/contracts";
import { createLogger, HeraldError } from "@herald/kit";
import { beforeEach, expect, test } from "vitest";
import { createQueueQuota, type QueueQuota } from "./queue-quota.ts";

let time: number;
let counted: ProjectId[];
/** What waits; undefined: the broker is unavailable; unknown: dispatch is. */
let waiting: number | "unknown" | undefined;
let quota: QueueQuota;
beforeEach(() => {
  time = 1_000_000;
  counted = [];
  waiting = 0;
  quota = createQueueQuota({
    limit: { messages: 100, bytes: 10_000 },
    count: async (projectId) => {
      counted.push(projectId);
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

test("asks the broker once in a tenth of the quota, and no more than once a second", async () => {
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

test("lets any number through as long as they are started", async () => {
  for (let second = 0; second < 20; second++) {
    expect(await admit(90)).toBe(90);
    time += 1_000;
  }
});

test("refuses what is more than may wait, until it waits no more, and nobody else", async () => {
  waiting = 95;
  // The tenth is the one that counts; it is one of five that there was still room for.
  expect(await admit(30)).toBe(14);
  const other = newProjectId(new Date());
  waiting = 0;
  expect(await admit(5, 10, other)).toBe(5);
  expect(await admit(1)).toBe(0);
  time += 1_000;
  expect(await admit(30)).toBe(30);
});

test("refuses many bytes as it does many notifications", async () => {
  // Eight of 1,000 bytes are waiting when they are counted; there is room for two more.
  expect(await admit(1, 1_000)).toBe(1);
  time += 1_000;
  waiting = 8;
  expect(await admit(5, 1_000)).toBe(2);
});

test("refuses nothing because the broker cannot be asked", async () => {
  waiting = undefined;
  for (let second = 0; second < 20; second++) {
    expect(await admit(90)).toBe(90);
    time += 1_000;
  }
});

test("takes all that it accepted as waiting while dispatch cannot be asked, and counts anew when it can", async () => {
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
