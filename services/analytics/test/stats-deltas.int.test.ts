import { newNotificationId, newProjectId, type ProjectId } from "@herald/contracts";
import { type FreshDatabase, freshDatabase } from "@herald/testing";
import { afterAll, beforeEach, describe, expect, test } from "vitest";
import { foldParts } from "../src/domain/aggregate.ts";
import { type Contribution, slotMs } from "../src/domain/stats-delta.ts";
import { foldContributions } from "../src/jobs/aggregate-stats.ts";
import { createRollupStore } from "../src/stores/rollup-store.ts";
import { createContributionStore } from "../src/stores/stats-delta-store.ts";
import { acceptedAt } from "./analytics-fixture.ts";

let database: FreshDatabase | undefined;
const dropped: Promise<void>[] = [];
const drop = () => {
  if (database) dropped.push(database.drop());
};

/** What one process of analytics has of its stores, and none of its memory is another's. */
const replica = () => {
  if (database === undefined) throw new Error("no database");
  const db = database.client.db(database.name);
  const contributions = createContributionStore(db);
  const rollups = createRollupStore(db);
  const foldOnce = foldContributions(contributions, rollups, () => new Date());
  return { db, contributions, rollups, foldOnce };
};
type Replica = ReturnType<typeof replica>;

let one: Replica;
let other: Replica;
beforeEach(async () => {
  drop();
  database = await freshDatabase();
  [one, other] = [replica(), replica()];
  await one.contributions.ensureIndexes();
  await one.rollups.ensureIndexes();
});
afterAll(async () => {
  drop();
  await Promise.all(dropped);
});

const projectId = newProjectId(acceptedAt);

/** A single send: a notification of its own, to one device. */
const single = (of: ProjectId = projectId, at = acceptedAt): Contribution => {
  const notificationId = newNotificationId(at);
  const slot = new Date(Math.floor(at.getTime() / slotMs) * slotMs);
  const _id = `${notificationId}/ios/0/accepted`;
  return { _id, projectId: of, kind: "deliveries", parts: [{ notificationId, slot, adds: [["sent.ios", 1]] }] };
};
const singles = (count: number) => Array.from({ length: count }, () => single());

const foldAll = async ({ foldOnce }: Replica) => {
  while ((await foldOnce()) > 0);
};

const day = 86_400_000;
/** What was sent, by the project's own hours, and by those of each notification. */
const sent = async (of: ProjectId = projectId, notifications: readonly Contribution[] = []) => {
  const sum = async (what: readonly Parameters<typeof one.rollups.hours>[1][number][]) => {
    const hours = await one.rollups.hours(
      of,
      what,
      new Date(acceptedAt.getTime() - day),
      new Date(acceptedAt.getTime() + day),
    );
    const quarters = hours.flatMap((hour) => Object.values(hour.quarters ?? {}));
    return quarters.reduce((all, quarter) => all + (quarter.sent?.ios ?? 0), 0);
  };
  const own = notifications.flatMap(({ parts }) => parts.map((part) => `hours/${part.notificationId}` as const));
  return { project: await sum(["project"]), notifications: await sum(own) };
};

const documents = () => one.db.collection("contributions").countDocuments();

test("contributions of one project and quarter of an hour are one document, and one more of the rollups each", async () => {
  const batch = singles(50);
  const stranger = single(newProjectId(acceptedAt));
  const later = single(projectId, new Date(acceptedAt.getTime() + slotMs));
  await one.contributions.put([...batch, stranger, later]);
  expect(await documents()).toBe(3);
  await foldAll(one);
  expect(await sent(projectId, [...batch, later])).toEqual({ project: 51, notifications: 51 });
  expect(await sent(stranger.projectId, [stranger])).toEqual({ project: 1, notifications: 1 });
  expect(await one.db.collection("rollups").countDocuments({ projectId })).toBe(52);
});

describe("a contribution counts once", () => {
  test("that is twice in one batch", async () => {
    const batch = singles(3);
    await one.contributions.put([...batch, ...batch.toReversed()]);
    await foldAll(one);
    expect(await sent(projectId, batch)).toEqual({ project: 3, notifications: 3 });
  });

  test.each([
    ["before it is folded", false],
    ["after it was folded and marked", true],
  ])("that comes again in another batch, beside new ones, %s", async (_, folded) => {
    const [old, fresh] = [singles(4), singles(4)];
    await one.contributions.put(old);
    if (folded) await foldAll(one);
    await other.contributions.put([...fresh.slice(0, 2), ...old.slice(1, 3), ...fresh.slice(2)]);
    await other.contributions.put([...old, ...fresh]);
    await foldAll(other);
    await foldAll(one);
    expect(await sent(projectId, [...old, ...fresh])).toEqual({ project: 8, notifications: 8 });
  });

  test("that several processes store at the same moment, each in other company, while all of them fold", async () => {
    const all = singles(300);
    const rest = single(newProjectId(acceptedAt));
    const replicas = [one, other, replica()];
    const rounds = Array.from({ length: 6 }, (_, round) => {
      const from = (round * 50) % 300;
      return [...all.slice(from, from + 120), ...all.slice(0, 30), rest];
    });
    let storing = true;
    const folding = replicas.map(async ({ foldOnce }) => {
      while (storing) await foldOnce();
    });
    try {
      await Promise.all(
        rounds.map(async (batch, index) => replicas[index % replicas.length]?.contributions.put(batch)),
      );
      await one.contributions.put(all);
    } finally {
      storing = false;
      await Promise.all(folding);
    }
    await foldAll(one);
    expect(await sent(projectId, all)).toEqual({ project: 300, notifications: 300 });
    expect(await sent(rest.projectId, [rest])).toEqual({ project: 1, notifications: 1 });
  });

  test("whose notification has figures of the hour already", async () => {
    const [accepted] = singles(1);
    if (accepted === undefined) throw new Error("no contribution");
    await one.contributions.put([accepted]);
    await foldAll(one);
    await one.contributions.put([...singles(2), { ...accepted, _id: `${accepted._id}/again` }]);
    await foldAll(one);
    expect(await sent(projectId, [accepted])).toEqual({ project: 4, notifications: 2 });
  });

  test("that is more than one fold takes", async () => {
    const all = singles(4_500);
    for (let from = 0; from < all.length; from += 900) await one.contributions.put(all.slice(from, from + 900));
    expect(await one.foldOnce()).toBe(2);
    await foldAll(other);
    expect(await sent(projectId, all)).toEqual({ project: 4_500, notifications: 4_500 });
  });
});

describe("a process that dies", () => {
  test("after it stored contributions is made up for by another, and what it still knows of them adds nothing", async () => {
    const batch = singles(5);
    await one.contributions.put(batch);
    await foldAll(other);
    expect(await sent(projectId, batch)).toEqual({ project: 5, notifications: 5 });
    await foldAll(one);
    expect(await sent(projectId, batch)).toEqual({ project: 5, notifications: 5 });
  });

  test.each([
    ["half of the new rollups", 2],
    ["all of the new rollups, and not the project's", 4],
  ])("in a fold after %s is made up for by another", async (_, written) => {
    const batch = singles(4);
    await one.contributions.put(batch);
    const last = await one.contributions.fold();
    const ids = (await one.contributions.findNotFolded(10)).map(({ _id }) => _id);
    expect(await one.contributions.beginFold(last, { contributions: ids, by: "the dead", at: new Date(0) })).toBe(true);
    const additions = foldParts(await one.contributions.get(ids));
    expect(additions.filter(({ fresh }) => fresh)).toHaveLength(4);
    await one.rollups.add(last.number + 1, additions.filter(({ fresh }) => fresh).slice(0, written));
    await foldAll(other);
    // The dead one wakes, and goes on.
    await one.rollups.add(last.number + 1, additions);
    expect(await sent(projectId, batch)).toEqual({ project: 4, notifications: 4 });
  });
});

test("what a deleted project had is not counted from memory", async () => {
  const [gone, stays] = [single(newProjectId(acceptedAt)), single()];
  await one.contributions.put([gone, stays]);
  while (await one.contributions.removePage(gone.projectId));
  await foldAll(one);
  expect(await sent(gone.projectId, [gone])).toEqual({ project: 0, notifications: 0 });
  expect(await sent(projectId, [stays])).toEqual({ project: 1, notifications: 1 });
});

test("retention removes documents that are counted and old, and no others", async () => {
  const [old, waiting, young] = [single(), single(), single(projectId, new Date(acceptedAt.getTime() + day))];
  await one.contributions.put([old, young]);
  await foldAll(one);
  await one.contributions.put([waiting]);
  await one.contributions.removeOld(new Date(acceptedAt.getTime() + slotMs));
  expect(
    await one.contributions.known(
      projectId,
      [old, waiting, young].map(({ _id }) => _id),
    ),
  ).toEqual(new Set([waiting._id, young._id]));
  await foldAll(other);
  expect(await sent(projectId, [old, waiting])).toEqual({ project: 2, notifications: 2 });
});

test("what an older version stored one by one is folded, known and no obstacle", async () => {
  const [{ parts: [part] = [] } = {}] = singles(1);
  const legacy = [1, 2].map((n) => ({ _id: `${projectId}/old-${n}`, projectId, kind: "deliveries", parts: [part] }));
  await one.db.collection("contributions").dropIndexes();
  await one.db
    .collection<{ _id: string }>("contributions")
    .insertMany(legacy.map((row) => ({ ...row, folded: false, at: acceptedAt })));
  await one.contributions.ensureIndexes();
  const batch = singles(2);
  await one.contributions.put(batch);
  await foldAll(one);
  expect((await sent(projectId, batch)).project).toBe(4);
  const asked = ["old-1", "old-3", batch[0]?._id ?? ""];
  expect(await one.contributions.known(projectId, asked)).toEqual(new Set(["old-1", batch[0]?._id]));
});
