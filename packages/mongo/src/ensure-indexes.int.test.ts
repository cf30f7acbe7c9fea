import { type FreshDatabase, freshDatabase } from "@herald/testing";
import { MongoClient } from "mongodb";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ensureIndexes, type IndexSpec, indexName } from "./ensure-indexes.ts";
import { outboxIndex } from "./outbox.ts";

let database: FreshDatabase;
beforeAll(async () => {
  database = await freshDatabase();
});
afterAll(() => database.drop());

const collection = (name: string) => database.client.db(database.name).collection(name);

const all: IndexSpec[] = [
  { fields: { projectId: 1, status: 1, _id: 1 }, purpose: "list" },
  {
    fields: { projectId: 1, tokenHash: 1 },
    purpose: "unique",
    unique: true,
    partial: { tokenHash: { $exists: true } },
  },
  { fields: { expiresAt: 1 }, purpose: "expire", expireAfterSeconds: 3_600 },
  { fields: { projectId: 1, openedAt: -1 }, purpose: "recent" },
  outboxIndex,
];

test("the name of an index consists of its fields and its purpose", () => {
  expect(all.map(indexName)).toEqual([
    "projectId_status__id__list",
    "projectId_tokenHash__unique",
    "expiresAt__expire",
    "projectId_openedAt__recent",
    "outbox.at__sweep",
  ]);
});

test("creates missing indexes, and a second run changes nothing", async () => {
  const things = collection("things");
  await ensureIndexes(things, all);
  const before = await things.listIndexes().toArray();
  expect(before.map((index) => index.name).sort()).toEqual([...all.map(indexName), "_id_"].sort());
  await ensureIndexes(things, all);
  expect(await things.listIndexes().toArray()).toEqual(before);
});

test("replicas that start at once do not trip over each other", async () => {
  const together = collection("together");
  await Promise.all(Array.from({ length: 5 }, () => ensureIndexes(together, all)));
  expect(await together.listIndexes().toArray()).toHaveLength(all.length + 1);
});

test("drops nothing: an older version may need it", async () => {
  const old = collection("old");
  await ensureIndexes(old, all);
  await ensureIndexes(old, all.slice(0, 1));
  expect(await old.listIndexes().toArray()).toHaveLength(all.length + 1);
});

test("drops retired ones, once for all replicas, while others write", async () => {
  const retiring = collection("retiring");
  await ensureIndexes(retiring, all);
  const [first, ...rest] = all as [IndexSpec, ...IndexSpec[]];
  const next = { ...first, purpose: "open", partial: { status: { $in: ["s1", "s2"] } } };
  const retire = () => ensureIndexes(retiring, [...rest, next], [indexName(first), "never_made"]);
  const inserts = Array.from({ length: 50 }, (_, n) => retiring.insertOne({ projectId: "a", status: `s${n}` }));
  await Promise.all([retire(), retire(), retire(), ...inserts]);
  await retire();
  const names = (await retiring.listIndexes().toArray()).map(({ name }) => name);
  expect(names.sort()).toEqual([...[...rest, next].map(indexName), "_id_"].sort());
  expect(await retiring.countDocuments()).toBe(50);
});

test.each<[string, IndexSpec]>([
  ["unique", { fields: { projectId: 1, status: 1, _id: 1 }, purpose: "list", unique: true }],
  ["partial", { fields: { projectId: 1, status: 1, _id: 1 }, purpose: "list", partial: { status: { $exists: true } } }],
  ["direction", { fields: { projectId: 1, status: -1, _id: 1 }, purpose: "list" }],
  ["time to live", { fields: { expiresAt: 1 }, purpose: "expire", expireAfterSeconds: 60 }],
])("another definition under the same name is an error that says which: %s", async (_name, changed) => {
  const things = collection("changed");
  await ensureIndexes(things, all);
  await expect(ensureIndexes(things, [changed])).rejects.toThrow(
    `the index changed.${indexName(changed)} has another definition in the database`,
  );
});

test("a unique index refuses duplicates, except among documents outside its filter", async () => {
  const unique = collection("unique");
  await ensureIndexes(unique, all);
  await unique.insertMany([{ projectId: "a" }, { projectId: "a" }, { projectId: "a", tokenHash: "x" }]);
  await expect(unique.insertOne({ projectId: "a", tokenHash: "x" })).rejects.toMatchObject({ code: 11000 });
});

test("an index may take longer to build than any other command", async () => {
  const large = collection("large");
  for (let n = 0; n < 6; n++)
    await large.insertMany(Array.from({ length: 10_000 }, (_, at) => ({ projectId: `p${at}`, status: `s${n}` })));
  const client = await new MongoClient(database.url, { socketTimeoutMS: 100 }).connect();
  await ensureIndexes(client.db(database.name).collection("large"), all);
  await client.close();
  expect(await large.listIndexes().toArray()).toHaveLength(all.length + 1);
});
