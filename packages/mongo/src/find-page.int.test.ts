import type { ListRequest, PageRequest } from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import { eventually, type FreshDatabase, freshDatabase } from "@herald/testing";
import { type Collection, type CommandStartedEvent, MongoClient } from "mongodb";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createCounts } from "./counts.ts";
import { ensureIndexes, type IndexSpec, indexName } from "./ensure-indexes.ts";
import { encodeAfter, findPage } from "./find-page.ts";

type Row = { _id: string; projectId: string; secret?: string; hidden?: true; state?: "done" | "new" | "held" };

const list: IndexSpec = { fields: { projectId: 1, _id: 1 }, purpose: "list" };
const hidden: IndexSpec = {
  fields: { projectId: 1, _id: 1 },
  purpose: "hidden",
  partial: { hidden: { $exists: true } },
};
const open = { state: { $in: ["new", "held"] } } as const;
const states: IndexSpec = { fields: { projectId: 1, state: 1, _id: 1 }, purpose: "open", partial: open };
const id = (index: number) => `r${String(index).padStart(6, "0")}`;
const rows = (projectId: string, from: number, to: number): Row[] =>
  Array.from({ length: to - from }, (_, index) => ({
    _id: `${projectId}-${id(from + index)}`,
    projectId,
    secret: "x",
  }));

let database: FreshDatabase;
let collection: Collection<Row>;

beforeAll(async () => {
  database = await freshDatabase();
  collection = database.client.db(database.name).collection<Row>("rows");
  await ensureIndexes(collection, [list, hidden, states]);
  await collection.insertMany([...rows("a", 0, 45), ...rows("b", 0, 3)]);
});
afterAll(() => database.drop());

const page = (number: number, perPage = 20): PageRequest => ({ by: "page", page: number, perPage });
const after = (key: string, perPage = 20): PageRequest => ({ by: "key", after: key, perPage });
const ask = (request: ListRequest, options: { projectId?: string; firstId?: (at: Date) => string } = {}) =>
  findPage(collection, {
    filter: { projectId: options.projectId ?? "a" },
    request,
    hint: indexName(list),
    projection: { _id: 1 },
    counts: createCounts(),
    ...(options.firstId && { firstId: options.firstId }),
  });

test.each([
  [1, 20, { count: 45, page: 1, pages: 3, from: 1, to: 20, last: 3 }],
  [3, 20, { count: 45, page: 3, pages: 3, from: 41, to: 45, last: 3 }],
  [4, 20, { count: 45, page: 4, pages: 3, from: 0, to: 0, last: 3 }],
  [1_000_000, 100, { count: 45, page: 1_000_000, pages: 1, from: 0, to: 0, last: 1 }],
  [1, 45, { count: 45, page: 1, pages: 1, from: 1, to: 45, last: 1 }],
  [1, 44, { count: 45, page: 1, pages: 2, from: 1, to: 44, last: 2 }],
])("page %i of %i a page", async (number, perPage, pagination) => {
  const answer = await ask(page(number, perPage));
  expect(answer).toMatchObject({ pagination });
  expect(answer.data).toEqual(
    rows("a", pagination.from === 0 ? 0 : pagination.from - 1, pagination.to).map(({ _id }) => ({ _id })),
  );
});

test("an empty list has one page with nothing on it", async () => {
  expect(await ask(page(1), { projectId: "none" })).toEqual({
    data: [],
    pagination: { count: 0, page: 1, pages: 1, from: 0, to: 0, last: 1 },
  });
});

test.each(["asc", "desc"] as const)("a walk by key meets every row once, in order: %s", async (order) => {
  const seen: string[] = [];
  let key: string | null = "";
  let pages = 0;
  while (key !== null) {
    const answer: Awaited<ReturnType<typeof ask>> = await ask({ ...after(key, 10), newestFirst: order === "desc" });
    if (!("next" in answer)) throw new Error("a walk has a next");
    seen.push(...answer.data.map((row) => row._id));
    key = answer.next;
    pages++;
  }
  const all = rows("a", 0, 45).map((row) => row._id);
  expect(seen).toEqual(order === "asc" ? all : all.reverse());
  expect(pages).toBe(5);
});

test.each([
  [{ createdAfter: "1970-01-01T00:00:00.040Z" }, 40, 45],
  [{ createdBefore: "1970-01-01T00:00:00.003Z" }, 0, 3],
  [{ createdAfter: "1970-01-01T00:00:00.010Z", createdBefore: "1970-01-01T00:00:00.030Z" }, 10, 30],
])("%o are the rows from %i to %i, in pages and walks of both orders", async (range, from, to) => {
  const firstId = (at: Date) => `a-${id(at.getTime())}`;
  const wanted = rows("a", from, to).map(({ _id }) => _id);
  for (const newestFirst of [false, true]) {
    const expected = newestFirst ? wanted.toReversed() : wanted;
    const paged = await ask({ ...page(1), ...range, newestFirst }, { firstId });
    expect(paged.data.map(({ _id }) => _id)).toEqual(expected.slice(0, 20));
    expect(paged).toMatchObject({ pagination: { count: to - from } });
    const walked: string[] = [];
    for (let key: string | null = ""; key !== null; ) {
      const next: Awaited<ReturnType<typeof ask>> = await ask({ ...after(key, 7), ...range, newestFirst }, { firstId });
      walked.push(...next.data.map(({ _id }) => _id));
      key = "next" in next ? next.next : null;
    }
    expect(walked).toEqual(expected);
  }
});

test("a walk ends without an empty page when the rows just fit", async () => {
  expect(await ask(after("", 45))).toMatchObject({ next: null });
});

test.each(["x", "AAAAAAAA", `${encodeAfter("a-r000001")}x`, encodeAfter("a-r000001").slice(0, -1), "é", '{"$gt":""}'])(
  "%j is no key that was given out",
  async (key) => {
    const refusal = ask(after(key));
    await expect(refusal).rejects.toThrow(HeraldError);
    await expect(refusal).rejects.toMatchObject({
      code: "validation-failed",
      messages: ["after: must be empty, to begin, or the `next` of the answer before"],
    });
  },
);

test("a walk survives that its last row was deleted", async () => {
  await collection.insertMany(rows("c", 0, 6));
  const first = await ask(after("", 3), { projectId: "c" });
  if (!("next" in first) || first.next === null) throw new Error("there is more");
  await collection.deleteOne({ _id: "c-r000002", projectId: "c" });
  const second = await ask(after(first.next, 3), { projectId: "c" });
  expect(second.data.map((row) => row._id)).toEqual(["c-r000003", "c-r000004", "c-r000005"]);
});

test("a page and a walk are served by the index that they name", async () => {
  await expect(
    findPage(collection, {
      filter: { projectId: "a" },
      request: page(1),
      hint: "no_such__index",
      counts: createCounts(),
    }),
  ).rejects.toThrow();
});

test("rows that are left out are on no page, in no walk and in no count, and the others' count reads only the index", async () => {
  const all = rows("h", 0, 40).map((row, n): Row => (n % 4 === 3 || n < 2 ? { ...row, hidden: true } : row));
  await collection.insertMany(all);
  const shown = all.filter((row) => !row.hidden).map(({ _id }) => _id);
  const client = await new MongoClient(database.url, { monitorCommands: true }).connect();
  const counted: unknown[] = [];
  client.on("commandStarted", ({ command, commandName }: CommandStartedEvent) => {
    if (commandName === "aggregate") counted.push([command.pipeline[0].$match, command.hint]);
  });
  const firstId = (at: Date) => `h-${id(at.getTime())}`;
  const get = (request: ListRequest) =>
    findPage(client.db(database.name).collection<Row>("rows"), {
      ...{ filter: { projectId: "h" }, without: { field: "hidden", hint: indexName(hidden) } },
      ...{ hint: indexName(list), projection: { _id: 1 }, counts: createCounts(), firstId, request },
    });
  for (const newestFirst of [false, true]) {
    const expected = newestFirst ? shown.toReversed() : shown;
    for (const perPage of [1, 3, 7, shown.length, 40]) {
      for (let n = 1; n <= Math.ceil(shown.length / perPage) + 1; n++) {
        const answer = await get({ ...page(n, perPage), newestFirst });
        expect(answer.data.map(({ _id }) => _id)).toEqual(expected.slice((n - 1) * perPage, n * perPage));
        expect(answer).toMatchObject({ pagination: { count: shown.length, pages: Math.ceil(shown.length / perPage) } });
      }
      const walked: string[] = [];
      for (let key: string | null = ""; key !== null; ) {
        const next: Awaited<ReturnType<typeof get>> = await get({ ...after(key, perPage), newestFirst });
        expect(next.data.length).toBe(Math.min(perPage, shown.length - walked.length));
        walked.push(...next.data.map(({ _id }) => _id));
        key = "next" in next ? next.next : null;
      }
      expect(walked).toEqual(expected);
    }
  }
  const range = { createdAfter: "1970-01-01T00:00:00.010Z", createdBefore: "1970-01-01T00:00:00.030Z" };
  counted.length = 0;
  expect(await get({ ...page(1, 100), ...range })).toMatchObject({ pagination: { count: 15 } });
  const filter = { projectId: "h", _id: { $gte: `h-${id(10)}`, $lt: `h-${id(30)}` } };
  expect(counted).toEqual(
    expect.arrayContaining([
      [filter, indexName(list)],
      [{ ...filter, hidden: { $exists: true } }, indexName(hidden)],
    ]),
  );
  expect(counted).toHaveLength(2);
  await client.close();
});

/** A project with thousands of rows, which the tests of counts share. */
const filter = { projectId: "large" };
const countLarge = () => ({ collection, filter, hint: indexName(list) });
/** Leaves the project that many rows. */
const resize = async (size: number) => {
  const had = await collection.countDocuments(filter);
  if (had < size) await collection.insertMany(rows("large", had, size));
  else await collection.deleteMany({ ...filter, _id: { $gte: `large-${id(size)}` } });
};

test("counts are exact below 10,000, and at most 10 s old above", async () => {
  let now = 0;
  const counts = createCounts(() => now);
  const large = countLarge();
  await resize(9_999);
  expect(await counts.count(large)).toBe(9_999);
  await resize(10_100);
  expect(await counts.count(large), "below 10,000 nothing is remembered").toBe(10_100);
  await resize(10_200);
  now = 4_999;
  expect(await counts.count(large), "young enough to be answered as it is").toBe(10_100);
  now = 5_000;
  expect(await counts.count(large), "answered as it is, and counted again meanwhile").toBe(10_100);
  await eventually(async () => expect(await counts.count(large)).toBe(10_200));
  await resize(10_300);
  now = 15_000;
  expect(await counts.count(large), "too old: the caller waits").toBe(10_300);
  const pages = await findPage(collection, { filter: large.filter, request: page(1, 100), hint: large.hint, counts });
  expect(pages).toMatchObject({ pagination: { count: 10_300, pages: 103 } });
});

test("a count that took long is kept for twenty times as long", async () => {
  let now = 0;
  /** The times at which the first count begins and ends. */
  const firstCount = [0, 3_000];
  const counts = createCounts(() => firstCount.shift() ?? now);
  const slow = countLarge();
  await resize(10_050);
  expect(await counts.count(slow)).toBe(10_050);
  await resize(10_100);
  now = 29_999;
  expect(await counts.count(slow)).toBe(10_050);
  now = 60_000;
  expect(await counts.count(slow), "too old: the caller waits").toBe(10_100);
});

test("a set that shrinks below 10,000 is exact again once its old count is too old", async () => {
  let now = 0;
  const counts = createCounts(() => now);
  const shrinking = countLarge();
  await resize(10_050);
  expect(await counts.count(shrinking)).toBe(10_050);
  await resize(9_950);
  now = 10_000;
  expect(await counts.count(shrinking)).toBe(9_950);
});

test("rows that are most of all are counted as all but the others, by indexes alone, and those left out are not counted", async () => {
  const all = rows("m", 0, 60).map((row, n): Row => {
    const state = n % 6 === 1 ? "new" : n % 6 === 2 ? "held" : "done";
    return { ...row, state, ...(n % 5 === 0 && { hidden: true }) };
  });
  await collection.insertMany(all);
  const client = await new MongoClient(database.url, { monitorCommands: true }).connect();
  const counted: unknown[] = [];
  client.on("commandStarted", ({ command, commandName }: CommandStartedEvent) => {
    if (commandName === "aggregate") counted.push([command.pipeline[0].$match, command.hint]);
  });
  const get = (request: ListRequest) =>
    findPage(client.db(database.name).collection<Row>("rows"), {
      filter: { projectId: "m", state: "done" },
      allBut: { filter: { projectId: "m" }, except: open, hint: indexName(states) },
      without: { field: "hidden", hint: indexName(hidden) },
      ...{ hint: indexName(list), projection: { _id: 1 }, counts: createCounts(), request },
      firstId: (at) => `m-${id(at.getTime())}`,
    });
  const shown = all.filter(({ state, hidden: left }) => state === "done" && !left).map(({ _id }) => _id);
  const first = await get(page(1, 10));
  expect(first.data.map(({ _id }) => _id)).toEqual(shown.slice(0, 10));
  expect(first).toMatchObject({ pagination: { count: shown.length } });
  counted.length = 0;
  const range = { createdAfter: "1970-01-01T00:00:00.010Z", createdBefore: "1970-01-01T00:00:00.030Z" };
  const within = shown.filter((one) => one >= `m-${id(10)}` && one < `m-${id(30)}`);
  expect(await get({ ...page(1, 100), ...range })).toMatchObject({ pagination: { count: within.length } });
  const inRange = { projectId: "m", _id: { $gte: `m-${id(10)}`, $lt: `m-${id(30)}` } };
  expect(counted).toEqual(
    expect.arrayContaining([
      [inRange, indexName(list)],
      [{ ...inRange, ...open }, indexName(states)],
      [{ ...inRange, state: "done", hidden: { $exists: true } }, indexName(hidden)],
    ]),
  );
  expect(counted).toHaveLength(3);
  await client.close();
});
