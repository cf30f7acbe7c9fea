import {
  type DeviceFilter,
  newDeviceId,
  newNotificationId,
  newProjectId,
  type ProjectId,
  parseTarget,
} from "@herald/contracts";
import { createCounts, encodeAfter } from "@herald/mongo";
import { type FreshDatabase, freshDatabase } from "@herald/testing";
import { type CommandStartedEvent, type Document, MongoClient } from "mongodb";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { audienceOf, neededBy } from "../src/domain/audience.ts";
import { allBuckets } from "../src/domain/partition-batches.ts";
import { createAudienceStore } from "../src/stores/audience-store.ts";
import { createDeviceStore } from "../src/stores/device-store.ts";
import { createExpandedPageStore } from "../src/stores/expansion-store.ts";
import { createPauseStore } from "../src/stores/pause-store.ts";
import { createProjectStore } from "../src/stores/project-store.ts";
import { createTopicStore } from "../src/stores/topic-store.ts";
import { pendingOf } from "./pending-of.ts";
import { seedDevices } from "./seed-devices.ts";

let database: FreshDatabase;
let client: MongoClient;
let commands: Document[] = [];
const now = () => new Date();
const projectId = newProjectId(now());
const context = { projectId, at: now(), newId: () => "id" };

const stores = () => {
  const db = client.db(database.name);
  const counts = createCounts();
  return {
    devices: createDeviceStore(db, counts, pendingOf(db)),
    topics: createTopicStore(db, counts),
    projects: createProjectStore(db, counts, now),
    pauses: createPauseStore(db),
    audience: createAudienceStore(db),
    expansions: createExpandedPageStore(db),
  };
};

beforeAll(async () => {
  database = await freshDatabase();
  client = await new MongoClient(database.url, { monitorCommands: true, ignoreUndefined: true }).connect();
  client.on("commandStarted", (event: CommandStartedEvent) => commands.push(event.command));
  const { devices, topics, projects, pauses, expansions } = stores();
  for (const store of [devices, topics, projects, pauses, expansions]) await store.ensureIndexes();
  const seeds = Array.from({ length: 300 }, (_, at) => ({
    token: `t${at}`,
    platform: "ios" as const,
    topics: ["news"],
  }));
  for await (const _ of seedDevices(client.db(database.name), projectId, seeds));
});
afterAll(async () => {
  await client.close();
  await database.drop();
});
beforeEach(() => {
  commands = [];
});

const pages = [
  { by: "page", page: 1, perPage: 20 },
  { by: "key", after: "", perPage: 20 },
] as const;
const filters: DeviceFilter[] = [
  {},
  { status: "active" },
  { platform: "ios" },
  { platform: "ios", status: "active" },
  { user_id: "u_1" },
  { app: "com.example.driver" },
  { app: "com.example.driver", platform: "ios", status: "active" },
  { user_id: "u_1", platform: "ios", status: "active" },
  { token: "t1" },
  { token: "t1", platform: "ios", user_id: "u_1", status: "active" },
];
const range = { createdAfter: "2020-01-01T00:00:00Z", createdBefore: "2090-01-01T00:00:00Z" };
const targetsOf = (...sources: string[]) =>
  sources.map((source) => {
    const parsed = parseTarget(source);
    if ("problem" in parsed) throw new Error(parsed.problem);
    return parsed.target;
  });
const lookups = (...sources: string[]) => {
  const targets = targetsOf(...sources);
  return audienceOf(targets).map((lookup) => ({ lookup, targets }));
};
/** More values than PostgreSQL compares one by one with the condition of a partial index. */
const many = Array.from({ length: 101 }, (_, at) => `t${at}`);
const everyLookup = [
  ...lookups("news", newDeviceId(now()), "token:t1", `metadata:a=${"x".repeat(300)}`),
  ...lookups("a", "b"),
  ...lookups(...many.map((token) => `token:${token}`)),
  ...lookups("all"),
  ...lookups("condition:'a' in topics && metadata.b > 1", "condition:platform == 'ios' && metadata.b.c != 2"),
  { lookup: { by: "facets", facets: ["z:UTC"], checked: "t:a", targets: [0] } as const, targets: targetsOf("a") },
];
const buckets = { from: 10, to: 70 };
const needed = neededBy(targetsOf("news", "condition:metadata.b > 1"));
const taken = async () => {};

/** Every query that may return many rows. */
const queries: [string, (parts: ReturnType<typeof stores>) => Promise<unknown>][] = [
  ...pages.flatMap((page): typeof queries => [
    ...filters.flatMap((filter): typeof queries => [
      [
        `devices by ${page.by} and ${JSON.stringify(filter)}`,
        ({ devices }) => devices.list(projectId, filter, { ...page, ...range }),
      ],
      [
        `newest devices by ${page.by} and ${JSON.stringify(filter)}`,
        ({ devices }) => devices.list(projectId, filter, { ...page, newestFirst: true }),
      ],
    ]),
    [`topics by ${page.by}`, ({ topics }) => topics.list(projectId, page)],
    [`topics by ${page.by} and prefix`, ({ topics }) => topics.list(projectId, page, "ne")],
    [`projects by ${page.by}`, ({ projects }) => projects.list(page)],
    [`a project's key by ${page.by}`, ({ projects }) => projects.list(page, { key: "shop" })],
  ]),
  ...everyLookup.flatMap(({ lookup, targets }): typeof queries => [
    [
      `a page by ${lookup.by}`,
      ({ audience }) =>
        audience.page({ projectId, targets }, lookup, lookup.by === "ids" ? allBuckets : buckets, taken),
    ],
    [`a count by ${lookup.by}`, ({ audience }) => audience.countUpTo({ projectId }, lookup, 100)],
    [`an estimate by ${lookup.by}`, ({ audience }) => audience.estimate({ projectId }, lookup)],
  ]),
  ["users", ({ devices }) => devices.listUsers(projectId, { after: "", perPage: 20 })],
  ["later users", ({ devices }) => devices.listUsers(projectId, { after: encodeAfter("ann"), perPage: 20 })],
  ["users by prefix", ({ devices }) => devices.listUsers(projectId, { after: encodeAfter("a"), perPage: 20 }, "an")],
  ["the devices of a user", ({ devices }) => devices.ofUser(projectId, "ann", 100)],
  ["the number of a user's devices", ({ devices }) => devices.countOfUser(projectId, "ann")],
  ["recipients by id", ({ devices }) => devices.findRecipients(projectId, [newDeviceId(now())])],
  ["holders of a token", ({ devices }) => devices.findHolders(projectId, "t1")],
  ["the device of a token", ({ devices }) => devices.findByToken(projectId, { platform: "ios" }, "t1")],
  [
    "the devices of many tokens",
    ({ devices }) => devices.findByTokens(many.map((tokenHash) => ({ projectId, platform: "ios", tokenHash }))),
  ],
  [
    "devices of many tokens that sends name",
    ({ audience }) => audience.named(projectId, { ids: [], hashes: many, facets: [] }, 10),
  ],
  ["devices of installations", ({ audience }) => audience.ofInstallations(projectId, ["i1", "i2"], needed, taken)],
  ["devices of many installations", ({ audience }) => audience.ofInstallations(projectId, many, needed, taken)],
  ["the number of devices of an installation", ({ devices }) => devices.countInstalled(projectId, "i1")],
  ["subscriptions by VAPID key", ({ devices }) => devices.countByVapidKey(projectId)],
  ["subscribers", ({ devices }) => devices.countSubscribers(projectId, "news")],
  ["subscriptions of a deleted topic", ({ devices }) => devices.unsubscribeSome(projectId, "none", 10)],
  ["devices of a deleted project", ({ devices }) => devices.removePage(newProjectId(now()), 10)],
  ["topics of a deleted project", ({ topics }) => topics.removePage(newProjectId(now()), 10)],
  ["a topic by name", ({ topics }) => topics.find(projectId, "news")],
  ["topics by name", ({ topics }) => topics.ensure(context, ["news"])],
  ["deleted topics", ({ topics }) => topics.deleting(10)],
  ["deleted projects", ({ projects }) => projects.deleted(10)],
  ["pauses that have ended", ({ pauses }) => pauses.endedBy(now())],
  ["all projects", ({ projects }) => projects.after(undefined, 10)],
  ["the pages of a notification", ({ expansions }) => expansions.totals(projectId, newNotificationId(now()))],
];

/** How the query plans of DocumentDB and MongoDB show that an index is read from end to end. */
const wholeIndex = new RegExp(`${Buffer.from("fullScan").toString("hex")}|"projectId":\\["\\[MinKey, MaxKey\\]"\\]`);

describe("the database uses the named index, or that of ids", () => {
  test.each(queries)("%s", async (name, ask) => {
    await ask(stores());
    const asked = commands.filter((command) => command.find !== undefined || command.aggregate !== undefined);
    const bounded = /^(a count|an estimate) by (ids|tokens)/.test(name);
    expect(asked.length > 0).toBe(!bounded);
    for (const command of asked) {
      const collection = client.db(database.name).collection(command.find ?? command.aggregate);
      const names = (await collection.listIndexes().toArray()).map(({ name }) => name);
      // Ids need no hint: the database has to choose an index of ids by itself.
      if (command.hint === undefined) expect(command.filter._id.$in.length).toBeGreaterThan(0);
      const allowed: string[] = command.hint === undefined ? ["_id_", "projectId__id__list"] : [command.hint];
      for (const index of allowed) expect(names).toContain(index);
      const { lsid: _lsid, $db: _db, ...explained } = command;
      const plan = await client.db(database.name).command({ explain: explained, verbosity: "queryPlanner" });
      // The explanation repeats the command with its hint.
      const text = JSON.stringify({ ...plan, command: undefined });
      expect(
        allowed.some((index) => text.includes(`"${index}"`)),
        "the plan",
      ).toBe(true);
      expect(text).not.toMatch(/COLLSCAN|Seq Scan/);
      if (/many|by tokens/.test(name)) expect(text.match(wholeIndex)).toBeNull();
    }
  });
});

test("a page without the device's bucket and a count of ids send no query", async () => {
  const { audience } = stores();
  const [{ lookup } = {}] = lookups(newDeviceId(now()));
  if (!lookup) throw new Error("no lookup");
  const [device] = lookup.by === "ids" ? lookup.ids : [];
  expect(device).toBeDefined();
  expect(await audience.countUpTo({ projectId }, lookup, 10)).toBe(1);
  expect(await audience.estimate({ projectId: projectId as ProjectId }, lookup)).toBe(1);
  expect(commands).toEqual([]);
});
