import { HeraldError } from "@herald/kit";
import { expect, test } from "vitest";
import { device, entry, useOutboxes } from "./outbox-fixture.ts";

const { published, lines, create, stored, devices } = useOutboxes();

test("flush publishes a document's events in order and removes them", async () => {
  await devices().insertOne(device("a", entry("1"), entry("2"), entry("3")));
  await create().flush(devices(), { _id: "a", projectId: "p" });
  expect(published).toEqual(["1", "2", "3"]);
  expect(await stored("a")).toEqual({ _id: "a", projectId: "p" });
});

test("flush publishes many documents at once, and only those of its filter", async () => {
  await devices().insertMany(Array.from({ length: 300 }, (_, index) => device(`d${index}`, entry(`e${index}`))));
  await devices().insertOne({ ...device("other", entry("x")), projectId: "q" });
  await create().flush(devices(), { projectId: "p" });
  expect(new Set(published)).toEqual(new Set(Array.from({ length: 300 }, (_, index) => `e${index}`)));
  expect(await devices().countDocuments({ outbox: { $exists: true } })).toBe(1);
});

test("flush of a document without an outbox does nothing", async () => {
  await devices().insertOne({ _id: "a", projectId: "p" });
  await create().flush(devices(), { _id: "a", projectId: "p" });
  expect(published).toEqual([]);
  expect(lines).toEqual([]);
});

test("an event that is added while publishing stays for the next flush", async () => {
  await devices().insertOne(device("a", entry("1")));
  const outbox = create({
    publish: async ({ id }) => {
      published.push(id);
      if (id === "1") await devices().updateOne({ _id: "a", projectId: "p" }, { $push: { outbox: entry("2") } });
    },
  });
  await outbox.flush(devices(), { _id: "a", projectId: "p" });
  expect((await stored("a"))?.outbox?.map(({ id }) => id)).toEqual(["2"]);
  await outbox.flush(devices(), { _id: "a", projectId: "p" });
  expect(published).toEqual(["1", "2"]);
  expect(await stored("a")).not.toHaveProperty("outbox");
});

test("a tombstone is removed with its last event, and not before", async () => {
  await devices().insertOne({ ...device("a", entry("1"), entry("2")), deletedAt: new Date() });
  let fail = true;
  const outbox = create({
    publish: async ({ id }) => {
      if (id === "2" && fail) throw new HeraldError("bus-unavailable", "the bus is unavailable");
      published.push(id);
    },
  });
  await outbox.flush(devices(), { _id: "a", projectId: "p" });
  expect((await stored("a"))?.outbox?.map(({ id }) => id)).toEqual(["2"]);
  fail = false;
  await outbox.flush(devices(), { _id: "a", projectId: "p" });
  expect(published).toEqual(["1", "2"]);
  expect(await stored("a")).toBeNull();
});

test("writers that overlap leave no empty outbox behind, and no tombstone", async () => {
  await devices().insertOne({ ...device("a", entry("1")), deletedAt: new Date() });
  const slow = create({
    publish: async () => {
      if (published.push("slow") > 1) return;
      await devices().updateOne({ _id: "a", projectId: "p" }, { $push: { outbox: entry("2") } });
      await create().flush(devices(), { _id: "a", projectId: "p" });
    },
  });
  await slow.flush(devices(), { _id: "a", projectId: "p" });
  expect(published).toEqual(["slow", "1", "2"]);
  expect(await stored("a")).toBeNull();
});

test("a tombstone that was registered again meanwhile stays", async () => {
  await devices().insertOne({ ...device("a", entry("1")), deletedAt: new Date() });
  const outbox = create({
    publish: async () => {
      await devices().updateOne(
        { _id: "a", projectId: "p" },
        { $unset: { deletedAt: "" }, $push: { outbox: entry("2") } },
      );
    },
  });
  await outbox.flush(devices(), { _id: "a", projectId: "p" });
  expect((await stored("a"))?.outbox?.map(({ id }) => id)).toEqual(["2"]);
});

test("a document that is no longer a tombstone stays, even without a new event", async () => {
  await devices().insertOne({ ...device("a", entry("1")), deletedAt: new Date() });
  const outbox = create({
    publish: async () => {
      await devices().updateOne({ _id: "a", projectId: "p" }, { $unset: { deletedAt: "" } });
    },
  });
  await outbox.flush(devices(), { _id: "a", projectId: "p" });
  expect(await stored("a")).toEqual({ _id: "a", projectId: "p" });
});

test("publish publishes the events of a written document in order, and removes them soon after", async () => {
  const outbox = create();
  for (const [id, final] of [
    ["a", false],
    ["b", true],
  ] as const) {
    const doc = device(id, entry(`${id}1`), entry(`${id}2`));
    await devices().insertOne(doc);
    await outbox.publish(devices(), doc, { final });
  }
  expect(published).toEqual(["a1", "a2", "b1", "b2"]);
  await outbox.stop();
  for (const id of ["a", "b"]) expect(await stored(id)).toEqual({ _id: id, projectId: "p" });
});

test("flushSoon publishes the events of documents of all projects, and a stop waits for it", async () => {
  const outbox = create();
  const docs = ["p", "q"].flatMap((projectId) =>
    Array.from({ length: 300 }, (_, at) => ({
      ...device(`${projectId}${at}`, entry(`${projectId}${at}/1`)),
      projectId,
    })),
  );
  await devices().insertMany(docs);
  for (const { projectId, _id } of docs) outbox.flushSoon(devices(), projectId, [_id]);
  await outbox.stop();
  expect(published.toSorted()).toEqual(docs.map(({ _id }) => `${_id}/1`).toSorted());
  expect(await devices().countDocuments({ outbox: { $exists: true } })).toBe(0);
});

test("an event that is added after a publish stays, and is published alone", async () => {
  const outbox = create();
  await devices().insertOne(device("a", entry("1")));
  await outbox.publish(devices(), device("a", entry("1")));
  await devices().updateOne({ _id: "a", projectId: "p" }, { $push: { outbox: entry("2") } });
  await outbox.publish(devices(), device("a", entry("1"), entry("2")));
  expect(published).toEqual(["1", "2"]);
  await devices().updateOne({ _id: "a", projectId: "p" }, { $push: { outbox: entry("3") } });
  await outbox.stop();
  expect((await stored("a"))?.outbox?.map(({ id }) => id)).toEqual(["3"]);
});

test("an event that the bus refuses stays in the document, and the log says so without its content", async () => {
  const outbox = create({
    publish: async ({ id }) => {
      if (id === "2") throw new HeraldError("bus-unavailable", "the bus is unavailable");
      published.push(id);
    },
  });
  const doc = device("a", entry("1"), entry("2"), entry("3"));
  await devices().insertOne(doc);
  await outbox.publish(devices(), doc, { final: true });
  await outbox.stop();
  expect(published).toEqual(["1"]);
  expect((await stored("a"))?.outbox?.map(({ id }) => id)).toEqual(["2", "3"]);
  expect(lines.join()).toContain("could not publish events; they stay in the outbox");
  expect(lines.join()).not.toContain("registered");
});

test("flush does not throw while the bus is unavailable; the events stay, and the log says so without their content", async () => {
  await devices().insertOne(device("a", entry("1")));
  await create({
    publish: () => Promise.reject(new HeraldError("bus-unavailable", "the bus is unavailable")),
  }).flush(devices(), { _id: "a", projectId: "p" });
  expect((await stored("a"))?.outbox).toHaveLength(1);
  expect(lines.join("")).toContain("they stay in the outbox");
});

test("stop waits for publishes in progress", async () => {
  await devices().insertOne(device("a", entry("1")));
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
  const flushed = outbox.flush(devices(), { _id: "a", projectId: "p" });
  await publishing;
  const stopped = outbox.stop();
  release();
  await stopped;
  await flushed;
  expect(published).toEqual(["1"]);
  expect(await stored("a")).not.toHaveProperty("outbox");
});
