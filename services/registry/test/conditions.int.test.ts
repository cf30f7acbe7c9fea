import { type DeviceId, type ExpandV1, newNotificationId, newProjectId, type ProjectId } from "@herald/contracts";
import { createCounts } from "@herald/mongo";
import { laneOf } from "@herald/rules";
import { type FreshDatabase, freshDatabase } from "@herald/testing";
import type { Db } from "mongodb";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { nextPage } from "../src/domain/partition-batches.ts";
import { partitionPage } from "../src/handlers/expand.ts";
import { createAudienceStore } from "../src/stores/audience-store.ts";
import { createDeviceStore } from "../src/stores/device-store.ts";
import { createExpandedPageStore } from "../src/stores/expansion-store.ts";
import { pendingOf } from "./pending-of.ts";
import { type SeedDevice, seedDevices } from "./seed-devices.ts";

let database: FreshDatabase;
let db: Db;
beforeAll(async () => {
  database = await freshDatabase();
  db = database.client.db(database.name);
  await createDeviceStore(db, createCounts(), pendingOf(db)).ensureIndexes();
});
afterAll(() => database.drop());

const seed = async (projectId: ProjectId, devices: readonly SeedDevice[]): Promise<DeviceId[]> => {
  const ids: DeviceId[] = [];
  for await (const some of seedDevices(db, projectId, devices)) ids.push(...some);
  return ids;
};

/** Reads all pages of an expansion, one after the other. */
const expand = async (projectId: ProjectId, targets: readonly string[]) => {
  const stores = { audience: createAudienceStore(db), expansions: createExpandedPageStore(db), now: () => new Date() };
  const message: ExpandV1 = {
    projectId,
    notificationId: newNotificationId(new Date()),
    page: 0,
    expansion: { n: 0 },
    fromBucket: 0,
    targets: [...targets],
    lane: laneOf(targets),
    expiresAt: new Date().toISOString(),
  };
  const devices: string[] = [];
  const matched = new Set<number>();
  let page = await partitionPage(stores, message);
  for (let n = 1; ; n++) {
    devices.push(...page.batches.flatMap((batch) => batch.devices.map(({ id }) => id)));
    for (const at of page.partition.matched) matched.add(at);
    const next = nextPage(page.range);
    if (!next) return { devices, pages: n, unmatched: targets.filter((_, at) => !matched.has(at)) };
    page = await partitionPage(stores, { ...message, page: n, fromBucket: next.from, toBucket: next.to });
  }
};

const long = "x".repeat(300);
const people = {
  ann: { platform: "ios", topics: ["news"], metadata: { plan: "pro", age: 30, deep: { city: "Bern" } } },
  bob: { platform: "android", topics: ["news", "muted"], metadata: { plan: "pro", age: "31" } },
  cat: { platform: "ios", topics: [], metadata: { plan: "free", bio: long }, identifiers: { os: 17.5, beta: true } },
  dan: { platform: "web", topics: ["sport"], metadata: { bio: [long] }, identifiers: { os: "9" } },
} as const satisfies Record<string, Omit<SeedDevice, "token">>;
type Name = keyof typeof people;
const names = Object.keys(people) as Name[];

describe("an audience by conditions", () => {
  const projectId = newProjectId(new Date());
  const nameOf = new Map<string, string>();
  const idOf = new Map<string, DeviceId>();
  beforeAll(async () => {
    const seeds = names.map(
      (token): SeedDevice => ({ ...structuredClone(people[token]), topics: [...people[token].topics], token }),
    );
    const ids = await seed(projectId, seeds);
    for (const [at, id] of ids.entries()) {
      nameOf.set(id, names[at] ?? "");
      idOf.set(names[at] ?? "", id);
    }
    await seed(newProjectId(new Date()), seeds);
  });

  test.each<[string[], Name[], number[]]>([
    [["condition:'news' in topics && !('muted' in topics)"], ["ann"], []],
    [["condition:!('news' in topics)"], ["cat", "dan"], []],
    [["condition:metadata.plan == 'pro' && metadata.age >= 31"], ["bob"], []],
    [["condition:metadata.age < 31 || metadata.deep.city in ['Bern', 'Basel']"], ["ann"], []],
    [["condition:metadata.plan != 'pro'"], ["cat", "dan"], []],
    [[`condition:metadata.bio == '${long}'`], ["cat"], []],
    [[`condition:metadata.bio == '${long}' || 'sport' in topics`], ["cat", "dan"], []],
    [["condition:identifiers.os > 9 && identifiers.beta == true"], ["cat"], []],
    [["condition:identifiers.os == '17.5'"], ["cat"], []],
    [["condition:platform in ['ios', 'web']"], ["ann", "cat", "dan"], []],
    [["condition:metadata.deep == 'Bern' || metadata.deep.city == 'Bern'"], ["ann"], []],
    [["condition:metadata.$where == 1"], [], [0]],
    [["condition:exists(metadata.deep)"], ["ann"], []],
    [["condition:exists(metadata.deep.city) || exists(metadata.bio)"], ["ann", "cat", "dan"], []],
    [["condition:exists(metadata.$where)", "condition:!exists(metadata.plan)"], ["dan"], [0]],
    [["condition:last_seen_at > '-1d' && exists(metadata.age)"], ["ann", "bob"], []],
    [["condition:last_seen_at < '-1d' || last_seen_at > '2999-01-01T00:00:00Z'"], [], [0]],
    [["condition:'none' in topics", "condition:platform == 'none'"], [], [0, 1]],
    [
      ["news", "condition:platform == 'ios'", "condition:'news' in topics", "token:dan", "condition:'gone' in topics"],
      ["ann", "bob", "cat", "dan"],
      [4],
    ],
    [["all", "condition:'news' in topics", "condition:metadata.plan == 'none'"], ["ann", "bob", "cat", "dan"], [2]],
  ])("%j is %j", async (targets, expected, unmatched) => {
    const found = await expand(projectId, targets);
    expect(found.devices.map((id) => nameOf.get(id)).sort()).toEqual([...expected].sort());
    expect(found.unmatched).toEqual(unmatched.map((at) => targets[at]));
  });

  test("has active devices only", async () => {
    await db
      .collection<{ _id: string }>("devices")
      .updateOne({ _id: idOf.get("ann") ?? "" }, { $set: { status: "inactive" } });
    const found = await expand(projectId, ["condition:'news' in topics"]);
    expect(found.devices.map((id) => nameOf.get(id))).toEqual(["bob"]);
  });
});

test("a large audience by conditions and other targets is read page by page, each device once", async () => {
  const projectId = newProjectId(new Date());
  const ids = await seed(
    projectId,
    Array.from({ length: 8_000 }, (_, at) => ({
      token: `t${at}`,
      platform: "ios" as const,
      topics: at % 2 ? ["odd"] : [],
      metadata: { n: at },
    })),
  );
  const { devices, pages, unmatched } = await expand(projectId, [
    "odd",
    "condition:'odd' in topics && metadata.n < 100",
    "condition:metadata.n >= 4000",
    "condition:metadata.n < 0",
  ]);
  expect(pages).toBeGreaterThan(2);
  expect(devices).toHaveLength(6_000);
  expect(new Set(devices)).toEqual(new Set(ids.filter((_, at) => at % 2 === 1 || at >= 4_000)));
  expect(unmatched).toEqual(["condition:metadata.n < 0"]);
});

test("an audience that is large only together is read in several pages", async () => {
  const projectId = newProjectId(new Date());
  const device = (at: number) => ({
    token: `s${at}`,
    platform: "ios" as const,
    topics: ["first", "last"],
    metadata: { n: at },
  });
  await seed(
    projectId,
    Array.from({ length: 2_900 }, (_, at) => device(at)),
  );
  // Three lookups of 2,900 devices, because one has at most 64 topics: none is more than a page, whatever the estimate says of it.
  const unused = Array.from({ length: 64 }, (_, at) => `unused-${at}`);
  const { devices, pages } = await expand(projectId, ["first", ...unused, "last", "condition:metadata.n >= 0"]);
  expect(devices).toHaveLength(2_900);
  expect(pages).toBeGreaterThan(1);
});
