import { createLogger } from "@herald/kit";
import { type FreshDatabase, freshDatabase } from "@herald/testing";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ensureIndexes, type IndexSpec, indexName } from "./ensure-indexes.ts";
import { applyRetention, type RetentionRule, readRetentionMark, removeByProject, removeFirst } from "./retention.ts";

const byTime = { fields: { projectId: 1, at: 1 }, purpose: "retention" } as const satisfies IndexSpec;
const log = createLogger({ service: "test", level: "silent" });
const minute = 60_000;
const going = new AbortController().signal;
type Row = { readonly _id: string; readonly projectId: string; readonly at: Date };

let database: FreshDatabase;
let clock = Date.parse("2030-01-01T00:00:00Z");
const now = () => new Date(clock);
const db = () => database.client.db(database.name);
beforeAll(async () => {
  database = await freshDatabase();
});
afterAll(() => database.drop());

const run = (rules: readonly RetentionRule[], signal = going) =>
  applyRetention({ db: db(), rules, everyMs: 10 * minute, now, log }, signal);

/** A rule with `batches` batches, which records where each began. */
const counted = (name: string, batches: number, onBatch: () => Promise<void> | void = () => {}) => {
  const began: string[] = [];
  const rule: RetentionRule = {
    name,
    keepMs: minute,
    removeBatch: async (_before, after = "0") => {
      began.push(after);
      await onBatch();
      const next = Number(after) + 1;
      return { removed: 1, more: next < batches, after: String(next) };
    },
  };
  return { rule, began };
};
const numbers = (count: number) => Array.from({ length: count }, (_, index) => String(index));

test("replicas share a walk: every batch is removed once, by any of them", async () => {
  const began: string[] = [];
  const replicas = Array.from({ length: 4 }, () => {
    const one = counted("shared", 100, () => new Promise(setImmediate));
    const { removeBatch } = one.rule;
    return {
      ...one.rule,
      removeBatch: (before: Date, after?: string) => {
        began.push(after ?? "0");
        return removeBatch(before, after);
      },
    };
  });
  // A replica that finds the rule claimed stops; the holder releases it after some batches.
  for (let round = 0; round < 5; round++) await Promise.all(replicas.map((rule) => run([rule])));
  expect(began).toEqual(numbers(100));
});

test("the next pass begins when it is due, by one replica", async () => {
  const { rule, began } = counted("due", 2);
  await run([rule]);
  await run([rule]);
  expect(began).toHaveLength(2);
  clock += 10 * minute;
  await Promise.all([run([rule]), run([rule])]);
  expect(began).toEqual(["0", "1", "0", "1"]);
});

test("a pass of a killed process continues with its last batch once the lease ends", async () => {
  let alive = true;
  const { rule, began } = counted("killed", 6, () => {
    if (began.length === 4 && alive) throw new Error("killed");
  });
  await expect(run([rule])).rejects.toThrow("killed");
  alive = false;
  await run([rule]);
  expect(began).toEqual(["0", "1", "2", "3"]);
  clock += minute;
  await run([rule]);
  // The batch in progress runs again: its end was not stored.
  expect(began).toEqual(["0", "1", "2", "3", "3", "4", "5"]);
});

test("a process whose lease ended meanwhile stops after its batch", async () => {
  const other = counted("slow", 3);
  const { rule, began } = counted("slow", 3, async () => {
    clock += minute;
    if (began.length === 1) await run([other.rule]);
  });
  await run([rule]);
  expect(began).toEqual(["0"]);
  expect(other.began).toEqual(["0", "1", "2"]);
});

test("a stop gives the claim back", async () => {
  const stopping = new AbortController();
  const { rule, began } = counted("stopped", 3, () => {
    if (began.length === 1) stopping.abort();
  });
  await run([rule], stopping.signal);
  expect(began).toEqual(["0"]);
  await run([rule]);
  expect(began).toEqual(["0", "1", "2"]);
});

test("the retention mark is stored before the first row is removed, and never moves back", async () => {
  const seen: (Date | undefined)[] = [];
  const rule = (keepMs: number): RetentionRule => ({
    name: "border",
    keepMs,
    removeBatch: async () => {
      seen.push(await readRetentionMark(db(), "border"));
      return { removed: 0, more: false };
    },
  });
  expect(await readRetentionMark(db(), "border")).toBeUndefined();
  await run([rule(minute)]);
  const border = new Date(clock - minute);
  clock += 10 * minute;
  await run([rule(60 * minute)]); // a longer retention than before
  expect(seen).toEqual([border, border]);
});

test("removes older rows of every project, and no others", async () => {
  const rows = db().collection<Row>("rows");
  await ensureIndexes(rows, [byTime]);
  const project = (index: number) => `prj_${String(index).padStart(4, "0")}`;
  const at = (index: number) => new Date(1_000 * index);
  const many = Array.from({ length: 2_500 }, (_, index) => ({ _id: `big/${index}`, projectId: project(7), at: at(1) }));
  const few = Array.from({ length: 250 }, (_, index) =>
    [1, 3].map((time) => ({ _id: `${index}/${time}`, projectId: project(index), at: at(time) })),
  ).flat();
  await rows.insertMany([...many, ...few]);
  const hint = indexName(byTime);
  const filters = (projectId: string) => [{ projectId, at: { $lt: at(2) } }];
  const removed: number[] = [];
  const removeBatch: RetentionRule["removeBatch"] = async (_before, after) => {
    const batch = await removeByProject(rows, { hint, sort: byTime.fields, filters }, after);
    removed.push(batch.removed);
    return batch;
  };
  await run([{ name: "rows", keepMs: minute, removeBatch }]);
  expect(removed.reduce((sum, one) => sum + one, 0)).toBe(2_750);
  expect(Math.max(...removed)).toBeLessThanOrEqual(2_100);
  expect(await rows.countDocuments()).toBe(250);
  expect(await rows.countDocuments({ at: at(3) })).toBe(250);
  expect(await removeFirst(rows, { at: at(9) }, { hint, sort: byTime.fields })).toEqual([]);
});
