import { type FreshDatabase, freshDatabase } from "@herald/testing";
import { Binary, Decimal128, Double, Int32, Long, ObjectId, Timestamp } from "mongodb";
import { afterAll, beforeAll, expect, test } from "vitest";
import { dumpDatabase, lastRestore, loadDump } from "./dump.ts";

let from: FreshDatabase;
let to: FreshDatabase;
beforeAll(async () => {
  [from, to] = await Promise.all([freshDatabase(), freshDatabase()]);
});
afterAll(() => Promise.all([from.drop(), to.drop()]));

const at = ({ url, name }: FreshDatabase) => ({ url, database: name });
const dbOf = ({ client, name }: FreshDatabase) => client.db(name);
const raw = async (database: FreshDatabase, name: string) =>
  (
    await dbOf(database)
      .collection(name)
      .find({}, { raw: true, sort: { _id: 1 } })
      .toArray()
  ).map((one) => Buffer.from(one as unknown as Uint8Array).toString("hex"));

test("every document is restored byte for byte, and documents that are there are kept unless they are to be replaced", async () => {
  const db = dbOf(from);
  await db.collection<{ _id: string }>("kinds").insertMany([
    { _id: "numbers", int: new Int32(1), double: new Double(1), long: new Long(1), decimal: new Decimal128("1.10") },
    {
      _id: "others",
      at: new Date(5),
      bytes: new Binary(Buffer.from([1, 2]), 4),
      id: new ObjectId(),
      t: new Timestamp({ t: 1, i: 2 }),
    },
    {
      _id: "users'",
      data: new Map([
        ["_bsontype", "ObjectId"],
        ["id", "x"],
      ]),
      list: [{ a: null }, [], {}],
    },
  ] as never[]);
  const many = Array.from({ length: 3_000 }, (_, n) => ({ _id: n, text: `${n}`.padEnd(1_000, "x") }));
  await db.collection<{ _id: number }>("many").insertMany(many);

  expect(await loadDump(at(to), dumpDatabase(at(from)), { replace: false })).toBe(3_003);
  for (const name of ["kinds", "many"]) expect(await raw(to, name)).toEqual(await raw(from, name));

  await expect(loadDump(at(to), dumpDatabase(at(from)), { replace: false })).rejects.toThrow("restore with --replace");
  await dbOf(to).collection<{ _id: string }>("later").insertOne({ _id: "since the backup" });
  expect(await loadDump(at(to), dumpDatabase(at(from)), { replace: true })).toBe(3_003);
  expect(await dbOf(to).collection("later").countDocuments()).toBe(0);
  expect(await lastRestore(dbOf(to))).toBeInstanceOf(Date);
  expect(await lastRestore(dbOf(from))).toBeUndefined();
});
