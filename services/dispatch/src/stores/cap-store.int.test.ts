import { type NotificationId, newNotificationId, newProjectId, userKey } from "@herald/contracts";
import { type FreshDatabase, freshDatabase } from "@herald/testing";
import { MongoClient } from "mongodb";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createCapStore, subjectOf, type WantedSlots } from "./cap-store.ts";

let database: FreshDatabase;
let other: MongoClient;
/** Those of two replicas. */
let stores: ReturnType<typeof createCapStore>[];
beforeAll(async () => {
  database = await freshDatabase();
  other = await new MongoClient(database.url).connect();
  stores = [database.client, other].map((client) => createCapStore(client.db(database.name)));
});
afterAll(async () => {
  await other.close();
  await database.drop();
});

const first = new Date("2030-01-15T00:00:00Z");
const later = (days: number) => new Date(first.getTime() + days * 86_400_000);
let ids = 0;
const wanted = (change: Partial<WantedSlots> & Pick<WantedSlots, "projectId" | "subjects">): WantedSlots => ({
  notificationId: newNotificationId(new Date(Date.UTC(2030, 0, 1) + ids++)),
  kind: "offers",
  cap: { count: 2, per: "day" },
  window: first,
  ...change,
});
const take = (one: WantedSlots, replica = 0) => (stores[replica] ?? stores[0])?.take(one) ?? Promise.reject();

test("a subject gets as many as the cap in a window, a repeat takes none, and the next window begins empty", async () => {
  const projectId = newProjectId(new Date());
  const sends = [1, 2, 3].map(() => wanted({ projectId, subjects: ["ann", "ann", "bob"] }));
  const held = [];
  for (const send of [...sends, ...sends]) held.push([...(await take(send))].sort());
  const both = ["ann", "bob"];
  expect(held).toEqual([both, both, [], both, both, []]);
  const [one, , third] = sends;
  const next = { window: later(1) };
  expect([...(await take({ ...(third as WantedSlots), ...next }))].sort()).toEqual(both);
  // A redelivery in a later window takes a slot of that window: the push may come now.
  expect([...(await take({ ...(one as WantedSlots), ...next }))].sort()).toEqual(both);
  expect([...(await take(wanted({ projectId, subjects: both, ...next })))]).toEqual([]);
  // A replica whose clock is behind takes no further slot of the window before.
  expect([...(await take(wanted({ projectId, subjects: both })))]).toEqual([]);
});

test("kinds, windows, projects and devices count separately", async () => {
  const projectId = newProjectId(new Date());
  const cap = { count: 1, per: "day" as const };
  const subjects = [subjectOf(projectId, { id: "dev_1", userId: "ann" })];
  expect(subjects).toEqual([userKey(projectId, "ann")]);
  for (const change of [
    {},
    { kind: "news" },
    { cap: { count: 1, per: "week" as const } },
    { projectId: newProjectId(new Date()) },
    { subjects: [subjectOf(projectId, { id: "dev_1" })] },
  ])
    expect((await take(wanted({ projectId, subjects, cap, ...change }))).size).toBe(1);
  expect((await take(wanted({ projectId, subjects, cap }))).size).toBe(0);
});

test("a person never gets more than the cap in a window, whatever two replicas repeat at the same moment", async () => {
  const projectId = newProjectId(new Date());
  const people = Array.from({ length: 40 }, (_, at) => `person-${at}`);
  let seed = 7;
  const random = (below: number) => {
    seed = (seed * 48_271) % 2_147_483_647;
    return seed % below;
  };
  for (let day = 0; day < 3; day++) {
    const window = later(day);
    const sends = Array.from({ length: 12 }, () =>
      wanted({ projectId, window, subjects: people.filter(() => random(3) > 0) }),
    );
    const answers = await Promise.all(
      sends.flatMap((send) =>
        Array.from({ length: 1 + random(3) }, async () => ({ send, held: await take(send, random(2)) })),
      ),
    );
    const byPerson = new Map<string, Set<NotificationId>>(people.map((person) => [person, new Set()]));
    for (const { send, held } of answers) for (const person of held) byPerson.get(person)?.add(send.notificationId);
    for (const person of people) {
      const asked = sends.filter(({ subjects }) => subjects.includes(person)).length;
      expect(byPerson.get(person)?.size).toBe(Math.min(2, asked));
    }
    // Each repeat gets the same answer.
    for (const { send, held } of answers) expect(await take(send)).toEqual(held);
  }
});

test("a large cap is filled to its last slot, and no further", async () => {
  const projectId = newProjectId(new Date());
  const cap = { count: 50, per: "day" as const };
  const sends = Array.from({ length: 60 }, () => wanted({ projectId, subjects: ["ann"], cap }));
  const held = await Promise.all(sends.map((send, at) => take(send, at % 2)));
  expect(held.filter(({ size }) => size === 1)).toHaveLength(50);
  for (const [at, send] of sends.entries()) expect(await take(send)).toEqual(held[at]);
});

test("a large batch takes its slots at once", async () => {
  const projectId = newProjectId(new Date());
  const subjects = Array.from({ length: 1_000 }, (_, at) => `person-${at}`);
  const cap = { count: 1, per: "day" as const };
  const sends = [0, 1, 2].map(() => wanted({ projectId, subjects, cap }));
  const held = await Promise.all(sends.map((send, at) => take(send, at % 2)));
  expect(held.reduce((sum, { size }) => sum + size, 0)).toBe(1_000);
});

test("many first slots that are free are taken without a look, also by a repeat; later ones, and few, are looked for", async () => {
  const watched = new MongoClient(database.url, { monitorCommands: true });
  let commands: string[] = [];
  watched.on("commandStarted", ({ commandName }) => commands.push(commandName));
  const store = createCapStore(watched.db(database.name));
  const projectId = newProjectId(new Date());
  const taking = async (one: WantedSlots) => {
    commands = [];
    const held = [...(await store.take(one))].sort();
    return { held, commands: commands.filter((name) => name === "find" || name === "insert") };
  };
  const many = (prefix: string) => Array.from({ length: 100 }, (_, at) => `${prefix}-${at}`).sort();
  const [both, next] = [many("ann"), many("bob")];
  const sent = wanted({ projectId, subjects: next });
  expect(await taking(wanted({ projectId, subjects: both }))).toEqual({ held: both, commands: ["find", "insert"] });
  expect(await taking(sent)).toEqual({ held: next, commands: ["insert"] });
  expect(await taking(sent)).toEqual({ held: next, commands: ["insert", "find"] });
  expect(await taking(sent)).toEqual({ held: next, commands: ["find"] });
  const second = wanted({ projectId, subjects: [...both, ...next] });
  expect((await taking(second)).held).toEqual([...both, ...next]);
  expect((await taking(wanted({ projectId, subjects: [...next, "eve"] }))).held).toEqual(["eve"]);
  const few = wanted({ projectId, subjects: ["cleo"], kind: "tips" });
  await taking({ ...few, subjects: many("cleo") });
  expect(await taking(few)).toEqual({ held: ["cleo"], commands: ["find", "insert"] });
  await watched.close();
});

test("the slots of an erased user, a deleted project and past weeks are removed", async () => {
  const [projectId, deleted] = [newProjectId(new Date()), newProjectId(new Date())];
  const key = userKey(projectId, "ann");
  const now = later(3);
  for (const window of [later(-5), first, later(3)]) {
    await take(wanted({ projectId, subjects: [key, "bob"], window }));
    await take(wanted({ projectId: deleted, subjects: ["ann"], window }));
  }
  await stores[0]?.erase({ projectId, key, at: new Date() }, now);
  await stores[0]?.removeProject(deleted, now);
  const caps = database.client.db(database.name).collection("caps");
  const left = async () =>
    (await caps.find({ projectId: { $in: [projectId, deleted] } }).toArray()).map(({ _id }) => _id).sort();
  const ids = ["2030-01-10", "2030-01-15", "2030-01-18"].map((day) => `${day}/${projectId}/bob/offers/day/00:00/0`);
  expect(await left()).toEqual(ids);
  await stores[0]?.removeOld(later(1));
  expect(await left()).toEqual(ids.slice(2));
});

test("old slots are found by the index of ids, without a sort", async () => {
  const caps = database.client.db(database.name).collection<{ _id: string }>("caps");
  const plan = await caps.find({ _id: { $lt: "2030-01-31" } }, { hint: "_id_", sort: { _id: 1 }, limit: 10 }).explain();
  expect(JSON.stringify({ ...plan, command: undefined })).toContain('"_id_"');
  expect(JSON.stringify(plan)).not.toMatch(/COLLSCAN|Seq Scan|"Sort"|"SORT"/);
});
