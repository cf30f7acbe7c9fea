import { type FreshDatabase, freshDatabase } from "@herald/testing";
import { type Collection, MongoClient } from "mongodb";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { findBatched, insertBatched, updateBatched } from "./batched.ts";
import { isDuplicateKey } from "./conflicts.ts";

type Row = { _id: string; projectId: string; name?: string; state?: string };

let database: FreshDatabase;
let rows: Collection<Row>;
beforeAll(async () => {
  database = await freshDatabase();
  rows = database.client.db(database.name).collection<Row>("rows");
  await rows.createIndex({ name: 1 }, { unique: true, partialFilterExpression: { name: { $exists: true } } });
});
beforeEach(async () => {
  await rows.deleteMany({});
});
afterAll(() => database.drop());

const row = (id: number, more: Partial<Row> = {}): Row => ({ _id: `r${id}`, projectId: "p", ...more });
const all = (count: number) => Array.from({ length: count }, (_, index) => index);
/** Records the names of the functions that are called on a collection. */
const counting = (collection: Collection<Row>) => {
  const asked: string[] = [];
  const counted = new Proxy(collection, {
    get(target, name) {
      const value = Reflect.get(target, name);
      if (typeof value !== "function") return value;
      return (...args: unknown[]) => {
        asked.push(String(name));
        return value.apply(target, args);
      };
    },
  });
  return { counted, asked };
};

test("concurrent inserts share a few commands, and each caller gets the result of its own document", async () => {
  await rows.insertMany([row(3), row(5, { name: "taken" })]);
  const { counted, asked } = counting(rows);
  const insert = insertBatched(counted);
  const inserted = await Promise.all(all(50).map((id) => insert(row(id, id === 7 ? { name: "taken" } : {}))));
  expect(inserted.flatMap((done, id) => (done ? [] : [id]))).toEqual([3, 5, 7]);
  expect(await rows.countDocuments()).toBe(49);
  expect(asked.length).toBeLessThan(5);
});

test("a document that is in one command twice is inserted once", async () => {
  const insert = insertBatched(rows);
  await insert(row(0));
  const inserted = await Promise.all([1, 1, 1, 1].map((id) => insert(row(id))));
  expect(inserted.filter(Boolean)).toHaveLength(1);
});

test.each([
  ["is too large", row(3, { name: "x".repeat(17 * 1_048_576) })],
  ["cannot be encoded", { ...row(3), "a\0b": 1 }],
])("when one document of a batch %s, its insert alone fails", async (_, bad) => {
  const insert = insertBatched(rows);
  const outcomes = await Promise.allSettled([row(0), row(1), row(2), bad, row(4)].map((one) => insert(one)));
  expect(outcomes.map(({ status }) => status)).toEqual(
    [0, 1, 2, 3, 4].map((id) => (id === 3 ? "rejected" : "fulfilled")),
  );
  const stored = await rows.find({}, { projection: { _id: 1 } }).toArray();
  expect(stored.map(({ _id }) => _id).sort()).toEqual(["r0", "r1", "r2", "r4"]);
  expect(await insert(row(5))).toBe(true);
});

test("a command that finds the database unavailable fails every insert that waits behind it at once", async () => {
  const client = await new MongoClient(database.url).connect();
  const insert = insertBatched(client.db(database.name).collection<Row>("rows"));
  await client.close();
  const outcomes = await Promise.allSettled(all(400).map((id) => insert(row(id))));
  for (const one of outcomes)
    expect(one).toMatchObject({
      status: "rejected",
      reason: expect.objectContaining({ code: "database-unavailable" }),
    });
});

test("concurrent updates share a few commands; a lone one reports a missing document, which in a batch may stay unknown", async () => {
  await rows.insertMany(all(50).map((id) => row(id)));
  const { counted, asked } = counting(rows);
  const update = updateBatched(counted);
  const set = (id: number) =>
    update({ _id: `r${id}`, projectId: "p" }, { state: { $exists: false } }, { $set: { state: "x" } });
  expect(await Promise.all(all(50).map(set))).toEqual(all(50).map(() => "updated"));
  expect(await rows.countDocuments({ state: "x" })).toBe(50);
  expect(asked.length).toBeLessThan(5);
  expect(await set(1)).toBe("not found");
  await rows.updateOne({ _id: "r2" }, { $unset: { state: "" } });
  const outcomes = await Promise.all([0, 1, 2, 3].map(set));
  expect(outcomes.every((one) => one === "unknown" || one === "not found" || one === "updated")).toBe(true);
  expect(outcomes[2]).not.toBe("not found");
  expect([outcomes[0], outcomes[1], outcomes[3]]).not.toContain("updated");
});

test("concurrent reads share a few commands, and each returns only documents of its project", async () => {
  await rows.insertMany(all(50).map((id) => row(id, { state: "x" })));
  const { counted, asked } = counting(rows);
  const find = findBatched<Row>(counted, { projectId: 1 });
  const found = await Promise.all([
    ...all(60).map((id) => find({ _id: `r${id}`, projectId: "p" })),
    find({ _id: "r1", projectId: "q" }),
  ]);
  expect(found.slice(0, 50)).toEqual(all(50).map((id) => row(id)));
  expect(found.slice(50)).toEqual(Array.from({ length: 11 }, () => null));
  expect(asked.length).toBeLessThan(5);
});

test("an update that the database refuses fails alone", async () => {
  await rows.insertMany([...all(5).map((id) => row(id)), row(9, { name: "taken" })]);
  const update = updateBatched(rows);
  const results = await update.all(
    all(5).map((id) => ({
      key: { _id: `r${id}`, projectId: "p" },
      condition: { state: { $exists: false } },
      update: { $set: { state: "x", ...(id === 3 && { name: "taken" }) } },
    })),
  );
  expect(results.map((one) => (one.status === "fulfilled" ? one.value : isDuplicateKey(one.reason)))).toEqual([
    ...["updated", "updated", "updated", true, "updated"],
  ]);
  expect(await rows.countDocuments({ state: "x" })).toBe(4);
});

test("documents of one call are inserted as if each came alone", async () => {
  await rows.insertOne(row(1));
  const results = await insertBatched(rows).all([row(0), row(1), { ...row(2), "a\0b": 1 } as Row]);
  expect(results).toEqual([{ done: true }, { done: false }, { done: false, error: expect.any(Error) }]);
});
