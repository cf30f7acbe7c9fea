import { createLogger, HeraldError } from "@herald/kit";
import { eventually, type FreshDatabase, freshDatabase } from "@herald/testing";
import type { Collection } from "mongodb";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { ensureIndexes } from "./ensure-indexes.ts";
import { createOutbox, type Outbox, type OutboxOptions, outboxIndex } from "./outbox.ts";

type Entry = { id: string; at: Date; what: string };
type Device = { _id: string; projectId: string; deletedAt?: Date; outbox?: Entry[] };

let database: FreshDatabase;
let devices: Collection<Device>;
let published: string[];
let lines: string[];
const outboxes: Outbox<Entry>[] = [];

beforeAll(async () => {
  database = await freshDatabase();
  devices = database.client.db(database.name).collection<Device>("devices");
  await ensureIndexes(devices, [outboxIndex]);
});
beforeEach(async () => {
  published = [];
  lines = [];
  await devices.deleteMany({});
});
afterEach(async () => {
  await Promise.all(outboxes.splice(0).map((outbox) => outbox.stop()));
});
afterAll(() => database.drop());

const create = (options: Partial<OutboxOptions<Entry>> = {}): Outbox<Entry> => {
  const outbox = createOutbox<Entry>({
    collections: [{ collection: devices, tombstone: "deletedAt" }],
    publish: async (entry) => {
      published.push(entry.id);
    },
    log: createLogger({ service: "test", level: "info", destination: { write: (line) => lines.push(line) } }),
    ...options,
  });
  outboxes.push(outbox);
  return outbox;
};

const long = () => new Date(Date.now() - 60_000);
const entry = (id: string, at = new Date()): Entry => ({ id, at, what: "registered" });
const device = (id: string, ...entries: Entry[]): Device => ({ _id: id, projectId: "p", outbox: entries });
const stored = (id: string) => devices.findOne({ _id: id, projectId: "p" });

test("flush publishes what a document carries, in order, and takes it out", async () => {
  await devices.insertOne(device("a", entry("1"), entry("2"), entry("3")));
  await create().flush(devices, { _id: "a", projectId: "p" });
  expect(published).toEqual(["1", "2", "3"]);
  expect(await stored("a")).toEqual({ _id: "a", projectId: "p" });
});

test("flush takes many documents at once, and only those of its filter", async () => {
  await devices.insertMany(Array.from({ length: 300 }, (_, index) => device(`d${index}`, entry(`e${index}`))));
  await devices.insertOne({ ...device("other", entry("x")), projectId: "q" });
  await create().flush(devices, { projectId: "p" });
  expect(new Set(published)).toEqual(new Set(Array.from({ length: 300 }, (_, index) => `e${index}`)));
  expect(await devices.countDocuments({ outbox: { $exists: true } })).toBe(1);
});

test("flush of a document without an outbox does nothing", async () => {
  await devices.insertOne({ _id: "a", projectId: "p" });
  await create().flush(devices, { _id: "a", projectId: "p" });
  expect(published).toEqual([]);
  expect(lines).toEqual([]);
});

test("what was added while publishing stays for the next flush", async () => {
  await devices.insertOne(device("a", entry("1")));
  const outbox = create({
    publish: async ({ id }) => {
      published.push(id);
      if (id === "1") await devices.updateOne({ _id: "a", projectId: "p" }, { $push: { outbox: entry("2") } });
    },
  });
  await outbox.flush(devices, { _id: "a", projectId: "p" });
  expect((await stored("a"))?.outbox?.map(({ id }) => id)).toEqual(["2"]);
  await outbox.flush(devices, { _id: "a", projectId: "p" });
  expect(published).toEqual(["1", "2"]);
  expect(await stored("a")).not.toHaveProperty("outbox");
});

test("a tombstone goes with its last event, and not before", async () => {
  await devices.insertOne({ ...device("a", entry("1"), entry("2")), deletedAt: new Date() });
  let fail = true;
  const outbox = create({
    publish: async ({ id }) => {
      if (id === "2" && fail) throw new HeraldError("bus-unavailable", "the bus is unavailable");
      published.push(id);
    },
  });
  await outbox.flush(devices, { _id: "a", projectId: "p" });
  expect((await stored("a"))?.outbox?.map(({ id }) => id)).toEqual(["2"]);
  fail = false;
  await outbox.flush(devices, { _id: "a", projectId: "p" });
  expect(published).toEqual(["1", "2"]);
  expect(await stored("a")).toBeNull();
});

test("writers that overlap leave no empty outbox behind, and no tombstone", async () => {
  await devices.insertOne({ ...device("a", entry("1")), deletedAt: new Date() });
  const slow = create({
    publish: async () => {
      if (published.push("slow") > 1) return;
      await devices.updateOne({ _id: "a", projectId: "p" }, { $push: { outbox: entry("2") } });
      await create().flush(devices, { _id: "a", projectId: "p" });
    },
  });
  await slow.flush(devices, { _id: "a", projectId: "p" });
  expect(published).toEqual(["slow", "1", "2"]);
  expect(await stored("a")).toBeNull();
});

test("a tombstone that was registered again meanwhile stays", async () => {
  await devices.insertOne({ ...device("a", entry("1")), deletedAt: new Date() });
  const outbox = create({
    publish: async () => {
      await devices.updateOne(
        { _id: "a", projectId: "p" },
        { $unset: { deletedAt: "" }, $push: { outbox: entry("2") } },
      );
    },
  });
  await outbox.flush(devices, { _id: "a", projectId: "p" });
  expect((await stored("a"))?.outbox?.map(({ id }) => id)).toEqual(["2"]);
});

test("a tombstone that is one no longer stays, even when nothing was added", async () => {
  await devices.insertOne({ ...device("a", entry("1")), deletedAt: new Date() });
  const outbox = create({
    publish: async () => {
      await devices.updateOne({ _id: "a", projectId: "p" }, { $unset: { deletedAt: "" } });
    },
  });
  await outbox.flush(devices, { _id: "a", projectId: "p" });
  expect(await stored("a")).toEqual({ _id: "a", projectId: "p" });
});

test("what a document was just written with is published in its order, and taken out soon after", async () => {
  const outbox = create();
  for (const [id, final] of [
    ["a", false],
    ["b", true],
  ] as const) {
    const doc = device(id, entry(`${id}1`), entry(`${id}2`));
    await devices.insertOne(doc);
    await outbox.publish(devices, doc, { final });
  }
  expect(published).toEqual(["a1", "a2", "b1", "b2"]);
  await outbox.stop();
  for (const id of ["a", "b"]) expect(await stored(id)).toEqual({ _id: id, projectId: "p" });
});

test("what was added since it was announced stays, and is announced alone", async () => {
  const outbox = create();
  await devices.insertOne(device("a", entry("1")));
  await outbox.publish(devices, device("a", entry("1")));
  await devices.updateOne({ _id: "a", projectId: "p" }, { $push: { outbox: entry("2") } });
  await outbox.publish(devices, device("a", entry("1"), entry("2")));
  expect(published).toEqual(["1", "2"]);
  await devices.updateOne({ _id: "a", projectId: "p" }, { $push: { outbox: entry("3") } });
  await outbox.stop();
  expect((await stored("a"))?.outbox?.map(({ id }) => id)).toEqual(["3"]);
});

test("an announcement that the bus does not take stays in the document, and the log says so without it", async () => {
  const outbox = create({
    publish: async ({ id }) => {
      if (id === "2") throw new HeraldError("bus-unavailable", "the bus is unavailable");
      published.push(id);
    },
  });
  const doc = device("a", entry("1"), entry("2"), entry("3"));
  await devices.insertOne(doc);
  await outbox.publish(devices, doc, { final: true });
  await outbox.stop();
  expect(published).toEqual(["1"]);
  expect((await stored("a"))?.outbox?.map(({ id }) => id)).toEqual(["2", "3"]);
  expect(lines.join()).toContain("could not publish events; they stay in the outbox");
  expect(lines.join()).not.toContain("registered");
});

test("flush does not throw when the bus is unavailable; the events stay, and the log says so without them", async () => {
  await devices.insertOne(device("a", entry("1")));
  await create({
    publish: () => Promise.reject(new HeraldError("bus-unavailable", "the bus is unavailable")),
  }).flush(devices, { _id: "a", projectId: "p" });
  expect((await stored("a"))?.outbox).toHaveLength(1);
  expect(lines.join("")).toContain("they stay in the outbox");
});

test("the sweep takes what is older than the grace period, and leaves what is young", async () => {
  await devices.insertMany([device("old", entry("1", long())), device("young", entry("2"))]);
  expect(await create().sweep()).toBe(1);
  expect(published).toEqual(["1"]);
  expect((await stored("young"))?.outbox).toHaveLength(1);
});

test("the sweep takes more than one chunk", async () => {
  await devices.insertMany(
    Array.from({ length: 1_100 }, (_, index) => device(`d${index}`, entry(`e${index}`, long()))),
  );
  expect(await create().sweep()).toBe(1_100);
  expect(new Set(published).size).toBe(1_100);
  expect(await devices.countDocuments({ outbox: { $exists: true } })).toBe(0);
});

test("the sweep is served by its partial index", async () => {
  await devices.insertMany(Array.from({ length: 200 }, (_, index) => ({ _id: `n${index}`, projectId: "p" })));
  const query = { outbox: { $exists: true }, "outbox.at": { $lt: new Date() } };
  const plan = JSON.stringify(await devices.find(query, { hint: "outbox.at__sweep" }).explain());
  expect(plan).toContain("outbox.at__sweep");
});

test("one event that cannot be published keeps no other from it", async () => {
  await devices.insertMany([device("bad", entry("bad", long())), device("good", entry("good", long()))]);
  const outbox = create({
    publish: async ({ id }) => {
      if (id === "bad") throw new Error("the broker refuses this one");
      published.push(id);
    },
  });
  await outbox.sweep();
  expect(published).toEqual(["good"]);
  expect((await stored("bad"))?.outbox).toHaveLength(1);
  expect(await stored("good")).not.toHaveProperty("outbox");
});

test("what cannot be published does not stand in the way of what came later", async () => {
  await devices.insertMany([
    ...Array.from({ length: 600 }, (_, index) => device(`bad${index}`, entry(`bad${index}`, long()))),
    device("good", entry("good", new Date(Date.now() - 30_000))),
  ]);
  const outbox = create({
    publish: async ({ id }) => {
      if (id.startsWith("bad")) throw new Error("the broker refuses this one");
      published.push(id);
    },
  });
  await outbox.sweep();
  expect(published).toEqual(["good"]);
});

test("while the bus is unavailable the sweep gives up at once, says so once, and goes on when it is back", async () => {
  await devices.insertMany(Array.from({ length: 300 }, (_, index) => device(`d${index}`, entry(`e${index}`, long()))));
  let away = true;
  let tries = 0;
  const outbox = create({
    publish: async ({ id }) => {
      tries++;
      if (away) throw new HeraldError("bus-unavailable", "the bus is unavailable");
      published.push(id);
    },
    sweepEveryMs: 10,
  });
  outbox.start();
  await eventually(() => expect(tries).toBeGreaterThan(200));
  expect(lines.filter((line) => line.includes("sweep"))).toHaveLength(1);
  away = false;
  await eventually(async () => expect(await devices.countDocuments({ outbox: { $exists: true } })).toBe(0));
  expect(new Set(published).size).toBe(300);
});

test("two replicas that sweep and flush at once publish at least once, and lose nothing", async () => {
  const writers = [create({ sweepEveryMs: 5, graceMs: 0 }), create({ sweepEveryMs: 5, graceMs: 0 })];
  for (const outbox of writers) outbox.start();
  const ids: string[] = [];
  await Promise.all(
    Array.from({ length: 20 }, async (_, index) => {
      await devices.insertOne(device(`d${index}`));
      for (let round = 0; round < 5; round++) {
        const id = `${index}-${round}`;
        ids.push(id);
        await devices.updateOne({ _id: `d${index}`, projectId: "p" }, { $push: { outbox: entry(id) } });
        await writers[round % 2]?.flush(devices, { _id: `d${index}`, projectId: "p" });
      }
    }),
  );
  await eventually(async () => expect(await devices.countDocuments({ "outbox.0": { $exists: true } })).toBe(0));
  expect(new Set(published)).toEqual(new Set(ids));
  expect(await devices.countDocuments({})).toBe(20);
});

test("stop waits for what is being published", async () => {
  await devices.insertOne(device("a", entry("1")));
  let release: () => void = () => {};
  const gate = new Promise<void>((resolve) => {
    release = resolve;
  });
  let began: () => void = () => {};
  const publishing = new Promise<void>((resolve) => {
    began = resolve;
  });
  const outbox = create({
    publish: async ({ id }) => {
      began();
      await gate;
      published.push(id);
    },
  });
  const flushed = outbox.flush(devices, { _id: "a", projectId: "p" });
  await publishing;
  const stopped = outbox.stop();
  release();
  await stopped;
  await flushed;
  expect(published).toEqual(["1"]);
  expect(await stored("a")).not.toHaveProperty("outbox");
});
