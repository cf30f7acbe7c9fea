import { randomBytes, randomUUID } from "node:crypto";
import type { MasterKeys } from "@herald/kit";
import { type FreshDatabase, freshDatabase } from "@herald/testing";
import type { Db } from "mongodb";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { AuditDocument } from "../src/domain/audit-chain.ts";
import { createAuditStore } from "../src/stores/audit-store.ts";

const keyed = (id: string): MasterKeys[0] => ({ id, secret: randomBytes(32) });
const [k1, k2] = [keyed("k1"), keyed("k2")];
const day = (of: number) => new Date(Date.UTC(2030, 0, of));

let database: FreshDatabase;
let db: Db;
beforeEach(async () => {
  database = await freshDatabase();
  db = database.client.db(database.name);
});
afterEach(() => database.drop());

const storeWith = (...keys: [MasterKeys[0], ...MasterKeys[0][]]) => createAuditStore(db, keys);
const rows = () => db.collection<AuditDocument>("auditRows");
const sequences = async () => (await rows().find({}).sort({ _id: 1 }).toArray()).map(({ _id }) => _id);
/** Appends one row per day, beginning with day `from`. */
const append = async (store: ReturnType<typeof storeWith>, from: number, count: number) => {
  await store.append(
    Array.from({ length: count }, (_, index) => ({
      eventId: randomUUID(),
      operator: { id: "root", name: "root", role: "admin" },
      action: "changeProject",
      target: "/admin/v1/projects",
      address: "127.0.0.1",
      at: day(from + index),
    })),
  );
};

test("old rows are removed, and the rest is checked from the checkpoint on, also after further rows", async () => {
  const store = storeWith(k1);
  await append(store, 1, 6);
  expect(await store.removeOld(day(4))).toEqual({ removed: 3, more: false });
  expect(await sequences()).toEqual([4, 5, 6]);
  const removed = { sequence: 3, at: day(3).toISOString() };
  expect(await store.check(0)).toMatchObject({ valid: true, checked: 3, head: { sequence: 6 }, removed });
  // The `next` of a check that began before rows were removed.
  expect(await store.check(2)).toMatchObject({ valid: true, checked: 3 });
  await append(store, 7, 1);
  expect(await store.removeOld(day(4))).toEqual({ removed: 0, more: false });
  expect(await store.removeOld(day(6))).toEqual({ removed: 2, more: false });
  expect(await store.check(0)).toMatchObject({ valid: true, checked: 2, head: { sequence: 7 } });
});

test("the newest row stays, however old: the next one follows it", async () => {
  const store = storeWith(k1);
  expect(await store.removeOld(day(30))).toEqual({ removed: 0, more: false });
  await append(store, 1, 3);
  expect(await store.removeOld(day(30))).toEqual({ removed: 2, more: false });
  expect(await sequences()).toEqual([3]);
  await append(store, 40, 1);
  expect(await store.check(0)).toMatchObject({ valid: true, checked: 2, head: { sequence: 4 } });
});

test("two processes remove at the same moment, and a crash leaves rows behind the checkpoint", async () => {
  const store = storeWith(k1);
  await append(store, 1, 6);
  const kept = await rows().find({}).toArray();
  await Promise.all([store.removeOld(day(4)), storeWith(k1).removeOld(day(5))]);
  expect((await store.check(0)).valid).toBe(true);
  await store.removeOld(day(5));
  expect(await sequences()).toEqual([5, 6]);
  await rows().insertMany(kept.slice(1, 3));
  expect(await store.check(0)).toMatchObject({ valid: true, checked: 2 });
  await store.removeOld(day(5));
  expect(await sequences()).toEqual([5, 6]);
});

test("rows that another process removes meanwhile are not missing, neither to a removal nor to a check", async () => {
  const [store, other] = [storeWith(k1), storeWith(k1)];
  for (let first = 1; first <= 40; first += 4) {
    await append(store, first, 4);
    const [checked] = await Promise.all([
      store.check(0),
      store.removeOld(day(first + 1)),
      other.removeOld(day(first + 2)),
      other.removeOld(day(first + 3)),
    ]);
    expect(checked).toMatchObject({ valid: true });
  }
});

test.each([
  ["changed", () => rows().updateOne({ _id: 2 }, { $set: { action: "getProject" } }), /row 2: the row was changed/],
  ["made old", () => rows().updateOne({ _id: 4 }, { $set: { at: day(1) } }), /row 4: the row was changed/],
  ["removed by hand", () => rows().deleteOne({ _id: 2 }), /row 3: the row before it is missing/],
])("rows of which one was %s are kept as evidence", async (_, tamper, sentence) => {
  const store = storeWith(k1);
  await append(store, 1, 5);
  await tamper();
  const before = await sequences();
  await expect(store.removeOld(day(5))).rejects.toThrow(sentence);
  await expect(store.removeOld(day(5))).rejects.toThrow("run `herald audit verify`");
  expect(await sequences()).toEqual(before);
  expect((await store.check(0)).valid).toBe(false);
});

test("a forged checkpoint hides no removed row", async () => {
  const store = storeWith(k1);
  await append(store, 1, 6);
  await store.removeOld(day(3));
  const starts = db.collection<{ _id: string; sequence: number; hash: string }>("auditHeads");
  const [fourth] = await rows().find({ _id: 4 }).toArray();
  await rows().deleteMany({ _id: { $lte: 4 } });
  expect((await store.check(0)).problem).toEqual({ sequence: 5, detail: "rows before it are missing" });
  await starts.updateOne({ _id: "start" }, { $set: { sequence: 4, hash: fourth?.hash ?? "" } });
  expect((await store.check(0)).problem).toEqual({
    sequence: 4,
    detail: "the checkpoint of the removed rows was changed or forged",
  });
  await starts.deleteOne({ _id: "start" });
  expect((await store.check(0)).problem?.sequence).toBe(5);
});

test("a rotated master key may go when its rows are removed, and not before", async () => {
  await append(storeWith(k1), 1, 3);
  await append(storeWith(k2, k1), 4, 3);
  const detail = "it cannot be checked: the master key k1 is not configured any more";
  expect((await storeWith(k2).check(0)).problem).toEqual({ sequence: 1, detail });
  await expect(storeWith(k2).removeOld(day(4))).rejects.toThrow(detail);
  await storeWith(k2, k1).removeOld(day(4));
  expect(await storeWith(k2).check(0)).toMatchObject({ valid: true, checked: 3 });
});
