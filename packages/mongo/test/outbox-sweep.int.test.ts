import { HeraldError } from "@herald/kit";
import { eventually } from "@herald/testing";
import { expect, test } from "vitest";
import { device, entry, useOutboxes } from "./outbox-fixture.ts";

const { published, lines, create, stored, devices } = useOutboxes();
const long = () => new Date(Date.now() - 60_000);

test("the sweep publishes events older than the grace period, and leaves younger ones", async () => {
  await devices().insertMany([device("old", entry("1", long())), device("young", entry("2"))]);
  expect(await create().sweep()).toBe(1);
  expect(published).toEqual(["1"]);
  expect((await stored("young"))?.outbox).toHaveLength(1);
});

test("the sweep publishes more than one chunk", async () => {
  await devices().insertMany(
    Array.from({ length: 1_100 }, (_, index) => device(`d${index}`, entry(`e${index}`, long()))),
  );
  expect(await create().sweep()).toBe(1_100);
  expect(new Set(published).size).toBe(1_100);
  expect(await devices().countDocuments({ outbox: { $exists: true } })).toBe(0);
});

test("the sweep uses its partial index", async () => {
  await devices().insertMany(Array.from({ length: 200 }, (_, index) => ({ _id: `n${index}`, projectId: "p" })));
  const query = { outbox: { $exists: true }, "outbox.at": { $lt: new Date() } };
  const plan = JSON.stringify(await devices().find(query, { hint: "outbox.at__sweep" }).explain());
  expect(plan).toContain("outbox.at__sweep");
});

test("one event that cannot be published does not stop the others", async () => {
  await devices().insertMany([device("bad", entry("bad", long())), device("good", entry("good", long()))]);
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

test("events that cannot be published do not block later ones", async () => {
  await devices().insertMany([
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

test("while the bus is unavailable the sweep stops at once and logs it once, and continues when the bus is back", async () => {
  await devices().insertMany(
    Array.from({ length: 300 }, (_, index) => device(`d${index}`, entry(`e${index}`, long()))),
  );
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
  await eventually(async () => expect(await devices().countDocuments({ outbox: { $exists: true } })).toBe(0));
  expect(new Set(published).size).toBe(300);
});

test("two replicas that sweep and flush at once publish at least once, and lose nothing", async () => {
  const writers = [create({ sweepEveryMs: 5, graceMs: 0 }), create({ sweepEveryMs: 5, graceMs: 0 })];
  for (const outbox of writers) outbox.start();
  const ids: string[] = [];
  await Promise.all(
    Array.from({ length: 20 }, async (_, index) => {
      await devices().insertOne(device(`d${index}`));
      for (let round = 0; round < 5; round++) {
        const id = `${index}-${round}`;
        ids.push(id);
        await devices().updateOne({ _id: `d${index}`, projectId: "p" }, { $push: { outbox: entry(id) } });
        await writers[round % 2]?.flush(devices(), { _id: `d${index}`, projectId: "p" });
      }
    }),
  );
  await eventually(async () => expect(await devices().countDocuments({ "outbox.0": { $exists: true } })).toBe(0));
  expect(new Set(published)).toEqual(new Set(ids));
  expect(await devices().countDocuments({})).toBe(20);
});
