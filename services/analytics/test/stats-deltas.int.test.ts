import { newNotificationId, newProjectId, type ProjectId } from "@herald/contracts";
import { isUnavailable } from "@herald/kit";
import { type FreshDatabase, freshDatabase } from "@herald/testing";
import { afterAll, beforeEach, describe, expect, test } from "vitest";
import { aggregateDeltas } from "../src/domain/aggregate.ts";
import { type StatsDelta, slotMs } from "../src/domain/stats-delta.ts";
import { createAggregate } from "../src/jobs/aggregate-stats.ts";
import { createRollupStore } from "../src/stores/rollup-store.ts";
import { createStatsDeltaStore } from "../src/stores/stats-delta-store.ts";
import { createTagValueStore } from "../src/stores/tag-value-store.ts";
import { acceptedAt } from "./analytics-fixture.ts";

let database: FreshDatabase | undefined;
const dropped: Promise<void>[] = [];
const drop = () => {
  if (database) dropped.push(database.drop());
};

/** The stores of one analytics process, which share no memory with other replicas. */
const replica = () => {
  if (database === undefined) throw new Error("no database");
  const db = database.client.db(database.name);
  const deltas = createStatsDeltaStore(db);
  const rollups = createRollupStore(db);
  const aggregate = createAggregate({ deltas, rollups, tagValues: createTagValueStore(db) });
  return { db, deltas, rollups, aggregate };
};
type Replica = ReturnType<typeof replica>;

let one: Replica;
let other: Replica;
beforeEach(async () => {
  drop();
  database = await freshDatabase();
  [one, other] = [replica(), replica()];
  await one.deltas.ensureIndexes();
  await one.rollups.ensureIndexes();
});
afterAll(async () => {
  drop();
  await Promise.all(dropped);
});

const projectId = newProjectId(acceptedAt);

/** The delta of a single send: its own notification, to one device. */
const single = (of: ProjectId = projectId, at = acceptedAt): StatsDelta => {
  const notificationId = newNotificationId(at);
  const slot = new Date(Math.floor(at.getTime() / slotMs) * slotMs);
  const _id = `${notificationId}/ios/0/accepted`;
  return { _id, projectId: of, kind: "deliveries", increments: [{ notificationId, slot, adds: [["sent.ios", 1]] }] };
};
const singles = (count: number) => Array.from({ length: count }, () => single());

const aggregateAll = async ({ aggregate }: Replica) => {
  while ((await aggregate()).documents > 0);
};

const day = 86_400_000;
/** The sent counts, by the hours of the project and of each notification. */
const sent = async (of: ProjectId = projectId, notifications: readonly StatsDelta[] = []) => {
  const sum = async (scope: readonly Parameters<typeof one.rollups.hours>[1][number][]) => {
    const hours = await one.rollups.hours(
      of,
      scope,
      new Date(acceptedAt.getTime() - day),
      new Date(acceptedAt.getTime() + day),
    );
    const quarters = hours.flatMap((hour) => Object.values(hour.quarters ?? {}));
    return quarters.reduce((all, quarter) => all + (quarter.sent?.ios ?? 0), 0);
  };
  const own = notifications.flatMap(({ increments }) =>
    increments.map((part) => `hours/${part.notificationId}` as const),
  );
  return { project: await sum(["project"]), notifications: await sum(own) };
};

const documents = () => one.db.collection("statsDeltas").countDocuments();

test("deltas of one project and quarter of an hour are one document", async () => {
  const batch = singles(50);
  const stranger = single(newProjectId(acceptedAt));
  const later = single(projectId, new Date(acceptedAt.getTime() + slotMs));
  await one.deltas.put([...batch, stranger, later]);
  expect(await documents()).toBe(3);
  await aggregateAll(one);
  expect(await sent(projectId, [...batch, later])).toEqual({ project: 51, notifications: 51 });
  expect(await sent(stranger.projectId, [stranger])).toEqual({ project: 1, notifications: 1 });
  expect(await one.db.collection("rollups").countDocuments({ projectId })).toBe(52);
});

/** The queue delivers a batch again after a temporary refusal, and writers that collide may be refused any number of times. */
const untilStored = async ({ deltas }: Replica, batch: readonly StatsDelta[]): Promise<void> => {
  for (;;)
    try {
      return await deltas.put(batch);
    } catch (error) {
      if (!isUnavailable(error)) throw error;
    }
};

describe("a delta counts once", () => {
  test("that is twice in one batch", async () => {
    const batch = singles(3);
    await one.deltas.put([...batch, ...batch.toReversed()]);
    await aggregateAll(one);
    expect(await sent(projectId, batch)).toEqual({ project: 3, notifications: 3 });
  });

  test.each([
    ["before it is aggregated", false],
    ["after it was aggregated and marked", true],
  ])("that is repeated in another batch, beside new ones, %s", async (_, aggregated) => {
    const [old, isNew] = [singles(4), singles(4)];
    await one.deltas.put(old);
    if (aggregated) await aggregateAll(one);
    await other.deltas.put([...isNew.slice(0, 2), ...old.slice(1, 3), ...isNew.slice(2)]);
    await other.deltas.put([...old, ...isNew]);
    await aggregateAll(other);
    await aggregateAll(one);
    expect(await sent(projectId, [...old, ...isNew])).toEqual({ project: 8, notifications: 8 });
  });

  test("that several processes store at once in different batches while all of them aggregate", async () => {
    const all = singles(300);
    const rest = single(newProjectId(acceptedAt));
    const replicas = [one, other, replica()];
    const rounds = Array.from({ length: 6 }, (_, round) => {
      const from = (round * 50) % 300;
      return [...all.slice(from, from + 120), ...all.slice(0, 30), rest];
    });
    let storing = true;
    const aggregation = replicas.map(async ({ aggregate }) => {
      while (storing) await aggregate();
    });
    try {
      await Promise.all(rounds.map((batch, index) => untilStored(replicas[index % replicas.length] ?? one, batch)));
      await one.deltas.put(all);
    } finally {
      storing = false;
      await Promise.all(aggregation);
    }
    await aggregateAll(one);
    expect(await sent(projectId, all)).toEqual({ project: 300, notifications: 300 });
    expect(await sent(rest.projectId, [rest])).toEqual({ project: 1, notifications: 1 });
  });

  test("whose notification has figures of the hour already", async () => {
    const [accepted] = singles(1);
    if (accepted === undefined) throw new Error("no delta");
    await one.deltas.put([accepted]);
    await aggregateAll(one);
    await one.deltas.put([...singles(2), { ...accepted, _id: `${accepted._id}/again` }]);
    await aggregateAll(one);
    expect(await sent(projectId, [accepted])).toEqual({ project: 4, notifications: 2 });
  });

  test("that is more than one run takes", async () => {
    const all = singles(4_500);
    for (let from = 0; from < all.length; from += 900) await one.deltas.put(all.slice(from, from + 900));
    expect((await one.aggregate()).documents).toBe(2);
    await aggregateAll(other);
    expect(await sent(projectId, all)).toEqual({ project: 4_500, notifications: 4_500 });
  });
});

describe("a process that is killed", () => {
  test("after it stored deltas is replaced by another, and its cache adds nothing", async () => {
    const batch = singles(5);
    await one.deltas.put(batch);
    await aggregateAll(other);
    expect(await sent(projectId, batch)).toEqual({ project: 5, notifications: 5 });
    await aggregateAll(one);
    expect(await sent(projectId, batch)).toEqual({ project: 5, notifications: 5 });
  });

  test.each([
    ["half of the new rollups", 2],
    ["all of the new rollups, and not the project's", 4],
  ])("during a run after %s is replaced by another", async (_, written) => {
    const batch = singles(4);
    await one.deltas.put(batch);
    const last = await one.deltas.lastRun();
    const ids = (await one.deltas.findNotAggregated(10)).map(({ _id }) => _id);
    expect(await one.deltas.beginRun(last, { deltas: ids, by: "the dead", at: new Date(0) })).toBe(true);
    const changes = aggregateDeltas(await one.deltas.get(ids), (_, tag) => tag);
    const own = changes.filter(({ scope }) => scope.startsWith("hours/"));
    expect(own).toHaveLength(4);
    await one.rollups.add(last.number + 1, own.slice(0, written));
    await aggregateAll(other);
    // The process that seemed dead continues.
    await one.rollups.add(last.number + 1, changes);
    expect(await sent(projectId, batch)).toEqual({ project: 4, notifications: 4 });
  });
});

test("deltas of a deleted project are not counted from memory", async () => {
  const [gone, stays] = [single(newProjectId(acceptedAt)), single()];
  await one.deltas.put([gone, stays]);
  while (await one.deltas.removePage(gone.projectId));
  await aggregateAll(one);
  expect(await sent(gone.projectId, [gone])).toEqual({ project: 0, notifications: 0 });
  expect(await sent(projectId, [stays])).toEqual({ project: 1, notifications: 1 });
});

test("retention removes only documents that are old and aggregated", async () => {
  const [old, waiting, young] = [single(), single(), single(projectId, new Date(acceptedAt.getTime() + day))];
  await one.deltas.put([old, young]);
  await aggregateAll(one);
  await one.deltas.put([waiting]);
  await one.deltas.removeOld(new Date(acceptedAt.getTime() + slotMs));
  const kept = await one.db.collection("statsDeltas").find({ projectId }).toArray();
  expect(new Set(kept.flatMap(({ keys }) => keys))).toEqual(new Set([waiting._id, young._id]));
  await aggregateAll(other);
  expect(await sent(projectId, [old, waiting])).toEqual({ project: 2, notifications: 2 });
});
