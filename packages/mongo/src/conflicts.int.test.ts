import { type FreshDatabase, freshDatabase } from "@herald/testing";
import { MongoBulkWriteError, MongoServerError } from "mongodb";
import { afterAll, beforeAll, expect, test } from "vitest";
import { areDuplicateKeys, isConflict, isDuplicateKey, retryConflicts, upsertOnce } from "./conflicts.ts";
import { guardStore } from "./unavailable.ts";

let database: FreshDatabase;
beforeAll(async () => {
  database = await freshDatabase();
});
afterAll(() => database.drop());

const writeError = (code: number, errmsg: string) => ({ code, errmsg, index: 0 });

test.each<[string, ConstructorParameters<typeof MongoServerError>[0], "duplicate" | "conflict" | "neither"]>([
  ["MongoDB's duplicate", { message: "E11000 duplicate key error", code: 11000 }, "duplicate"],
  [
    "FerretDB's findOneAndUpdate",
    { message: 'conflicting key value violates exclusion constraint "documents_rum_index_3"', code: 1 },
    "duplicate",
  ],
  ["MongoDB's write conflict", { message: "Write conflict", code: 112 }, "conflict"],
  ["FerretDB's insert", { message: "deadlock detected", code: 16908292 }, "conflict"],
  ["FerretDB's update", { message: "deadlock detected", code: 1 }, "conflict"],
  ["a bad query", { message: "unknown operator", code: 2 }, "neither"],
])("%s", (_name, answer, kind) => {
  const error = new MongoServerError(answer);
  expect([isDuplicateKey(error), isConflict(error)]).toEqual([kind === "duplicate", kind === "conflict"]);
});

test("a conflict is retried a few times; other errors are not retried", async () => {
  let runs = 0;
  const failing = (error: Error, times: number) => async () => {
    runs++;
    if (runs <= times) throw error;
    return "done";
  };
  const conflict = new MongoServerError({ message: "deadlock detected", code: 1 });
  expect(await retryConflicts(failing(conflict, 3))).toBe("done");
  expect(runs).toBe(4);
  runs = 0;
  await expect(retryConflicts(failing(conflict, 100))).rejects.toMatchObject({
    code: "database-unavailable",
    cause: conflict,
    retryAfterSeconds: 1,
  });
  expect(runs).toBe(6);
  runs = 0;
  await expect(retryConflicts(failing(new Error("x"), 100))).rejects.toThrow("x");
  expect(runs).toBe(1);
});

test("nested retries add up to six attempts", async () => {
  const runs = { write: 0, upsert: 0 };
  const lost = (name: keyof typeof runs) => async () => {
    runs[name]++;
    throw new MongoServerError({ message: "deadlock detected", code: 1 });
  };
  const store = guardStore({
    write: () => retryConflicts(lost("write")),
    upsert: () => upsertOnce(lost("upsert")),
  });
  const writes = Object.values(guardStore(store)).map((write) =>
    expect(write()).rejects.toMatchObject({ code: "database-unavailable" }),
  );
  await Promise.all(writes);
  expect(runs).toEqual({ write: 6, upsert: 6 });
});

type Thing = { _id: string; name: string; seen: number };
const things = () => database.client.db(database.name).collection<Thing>("things");

test("recognizes a duplicate key, and no other error", async () => {
  await things().insertOne({ _id: "a", name: "a", seen: 0 });
  const twice = await things()
    .insertOne({ _id: "a", name: "a", seen: 0 })
    .catch((error: unknown) => error);
  expect(isDuplicateKey(twice)).toBe(true);
  const some = await things()
    .insertMany(
      [
        { _id: "a", name: "a", seen: 0 },
        { _id: "b", name: "b", seen: 0 },
      ],
      { ordered: false },
    )
    .catch((error: unknown) => error);
  expect([isDuplicateKey(some), areDuplicateKeys(some), areDuplicateKeys(twice)]).toEqual([true, true, false]);
  const brokenOff = new MongoBulkWriteError({ message: "E11000", code: 11000, writeErrors: [] }, {} as never);
  expect([isDuplicateKey(brokenOff), areDuplicateKeys(brokenOff)]).toEqual([false, false]);
  const mixed = new MongoBulkWriteError(
    {
      message: "x",
      code: 11000,
      writeErrors: [writeError(11000, "x"), writeError(16908292, "deadlock detected")] as never,
    },
    {} as never,
  );
  expect(isDuplicateKey(mixed)).toBe(false);
  expect(isConflict(mixed)).toBe(true);
  expect(isConflict(some)).toBe(false);
  expect(isDuplicateKey(new Error("E11000"))).toBe(false);
  expect(isDuplicateKey({ code: 11000 })).toBe(false);
});

test.each(["updateOne", "findOneAndUpdate"] as const)(
  "of many that upsert the same key at once, all succeed and one document is there: %s",
  async (how) => {
    await things().createIndex({ name: 1 }, { unique: true });
    for (let round = 0; round < 2; round++) {
      const name = `${how} ${round}`;
      const add = (index: number) =>
        things()[how]({ name }, { $inc: { seen: 1 }, $setOnInsert: { _id: `${name}-${index}` } }, { upsert: true });
      await Promise.all(Array.from({ length: 4 }, (_, index) => upsertOnce<unknown>(() => add(index))));
      expect(await things().find({ name }).toArray()).toMatchObject([{ seen: 4 }]);
    }
  },
  60_000, // PostgreSQL needs a second for each deadlock
);

test("a second duplicate key is an error, because another document has the key", async () => {
  let runs = 0;
  const always = () => {
    runs++;
    return things().insertOne({ _id: "a", name: "other", seen: 0 });
  };
  await expect(upsertOnce(always)).rejects.toMatchObject({ code: 11000 });
  expect(runs).toBe(2);
});
