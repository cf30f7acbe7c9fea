import { newNotificationId, newProjectId } from "@herald/contracts";
import { type FreshDatabase, freshDatabase } from "@herald/testing";
import { afterAll, beforeEach, expect, test } from "vitest";
import { type StatsDelta, slotMs } from "../src/domain/stats-delta.ts";
import { createAggregate } from "../src/jobs/aggregate-stats.ts";
import { rebuildStatistics } from "../src/rebuild/rebuild-statistics.ts";
import { createStores, type Stores } from "../src/stores/create-stores.ts";
import { statsDeltaDocuments } from "../src/stores/stats-delta-store.ts";
import { acceptedAt } from "./analytics-fixture.ts";

/** A rebuild reads a thousand documents at a time: three pages. */
const documents = 2_200;
const projectId = newProjectId(acceptedAt);
/** All documents are of one notification, so that the pages change the same rollups. */
const notificationId = newNotificationId(acceptedAt);

const delta = (index: number): StatsDelta => ({
  _id: `${notificationId}/${index}/accepted`,
  projectId,
  kind: "deliveries",
  increments: [
    { notificationId, slot: new Date(acceptedAt.getTime() + (index % 8) * slotMs), adds: [["sent.ios", index + 1]] },
  ],
});
const sumTo = (count: number) => (count * (count + 1)) / 2;

let database: FreshDatabase | undefined;
let stores: Stores;
const dropped: Promise<void>[] = [];
const drop = () => {
  if (database) dropped.push(database.drop());
};
const db = () => {
  if (database === undefined) throw new Error("no database");
  return database.client.db(database.name);
};
beforeEach(async () => {
  drop();
  database = await freshDatabase();
  stores = createStores(db());
  for (const { ensureIndexes } of Object.values(stores)) await ensureIndexes();
  const stored = Array.from({ length: documents }, (_, index) => statsDeltaDocuments([delta(index)]))
    .flat()
    .map(({ aggregated: _, ...document }) => document);
  await db().collection<(typeof stored)[number]>("statsDeltas").insertMany(stored);
});
afterAll(async () => {
  drop();
  await Promise.all(dropped);
});

const rebuild = async (using = stores): Promise<string[]> => {
  const said: string[] = [];
  await rebuildStatistics(db(), using, (message) => said.push(message));
  return said;
};

/** The stores of a process that calls `happens` instead of writing the page `page`. */
const whenWriting = (page: number, happens: (write: (share: number) => Promise<void>) => Promise<void>): Stores => {
  let pages = 0;
  const { add } = stores.rollups;
  const addOrMore: typeof add = async (number, changes) => {
    if (++pages !== page) return add(number, changes);
    await happens((share) => add(number, changes.slice(0, changes.length * share)));
  };
  return { ...stores, rollups: { ...stores.rollups, add: addOrMore } };
};

/** Runs a rebuild that is killed in the middle of a page. */
const interrupt = async (page: number) => {
  const killed = whenWriting(page, async (write) => {
    await write(0.5);
    throw new Error("killed");
  });
  await expect(rebuild(killed)).rejects.toThrow("killed");
};

/** The sent counts, by the hours of the project and of the notification. */
const sent = async () => {
  const day = 86_400_000;
  const range = [new Date(acceptedAt.getTime() - day), new Date(acceptedAt.getTime() + day)] as const;
  const sum = async (scope: "project" | `hours/${typeof notificationId}`) => {
    const hours = await stores.rollups.hours(projectId, [scope], ...range);
    const quarters = hours.flatMap((hour) => Object.values(hour.quarters ?? {}));
    return quarters.reduce((all, quarter) => all + (quarter.sent?.ios ?? 0), 0);
  };
  return [await sum("project"), await sum(`hours/${notificationId}`)];
};
const all = [sumTo(documents), sumTo(documents)];

test("a rebuild that is killed in every page continues, and counts each delta once", async () => {
  await interrupt(1);
  // The second page that this one and the next write: a rebuild repeats the page that the one before it left.
  for (const before of [1, 2]) {
    expect(await sent(), `before page ${before} is complete`).not.toEqual(all);
    await interrupt(2);
  }
  expect(await sent()).not.toEqual(all);
  const said = await rebuild();
  expect(said[0]).toMatch(/^continues after/);
  expect(said.at(-1)).toBe(`${documents - 2_000} documents of deltas are counted`);
  expect(await sent()).toEqual(all);
  expect((await rebuild())[0]).toMatch(/are empty$/);
  expect(await sent()).toEqual(all);
});

test("a rebuild starts over when analytics ran after the interruption, and later deltas count", async () => {
  await interrupt(2);
  await stores.deltas.put([delta(documents)]);
  expect((await createAggregate(stores)()).documents).toBe(1);
  expect((await rebuild())[0]).toMatch(/are empty$/);
  expect(await sent()).toEqual([sumTo(documents + 1), sumTo(documents + 1)]);
  await stores.deltas.put([delta(documents), delta(documents + 1)]);
  await createAggregate(stores)();
  expect(await sent()).toEqual([sumTo(documents + 2), sumTo(documents + 2)]);
});

test("a rebuild completes the run that a killed analytics left, and counts what waits", async () => {
  await stores.deltas.put([delta(documents)]);
  const last = await stores.deltas.lastRun();
  const ids = (await stores.deltas.findNotAggregated(10)).map(({ _id }) => _id);
  await stores.deltas.beginRun(last, { deltas: ids, by: "the dead", at: new Date(0) });
  await rebuild();
  expect(await sent()).toEqual([sumTo(documents + 1), sumTo(documents + 1)]);
});

test("a rebuild beside a running analytics stops with an error, and the next one is exact", async () => {
  const beside = whenWriting(2, async (write) => {
    await stores.deltas.put([delta(documents)]);
    await createAggregate(stores)();
    await write(1);
  });
  await expect(rebuild(beside)).rejects.toThrow("analytics is running");
  await rebuild();
  expect(await sent()).toEqual([sumTo(documents + 1), sumTo(documents + 1)]);
});
