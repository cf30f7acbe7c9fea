import { newProjectId } from "@herald/contracts";
import { createCounts } from "@herald/mongo";
import { type FreshDatabase, freshDatabase } from "@herald/testing";
import { MongoClient } from "mongodb";
import { afterAll, beforeAll, expect, test } from "vitest";
import { eventContext } from "../domain/registry-events.ts";
import { createProjectStore } from "./project-store.ts";
import { createTopicStore } from "./topic-store.ts";

let database: FreshDatabase;
let watched: MongoClient;
let commands: string[] = [];
beforeAll(async () => {
  database = await freshDatabase();
  watched = await new MongoClient(database.url, { monitorCommands: true }).connect();
  watched.on("commandStarted", ({ commandName }) => commands.push(commandName));
});
afterAll(async () => {
  await watched.close();
  await database.drop();
});

const many = <Result>(work: () => Promise<Result>): Promise<PromiseSettledResult<Result>[]> =>
  Promise.allSettled(Array.from({ length: 100 }, work));
const count = (name: string): number => commands.filter((one) => one === name).length;

test("registrations of one moment ask once whether their project exists, or twice", async () => {
  const store = createProjectStore(watched.db(database.name), createCounts(), () => new Date());
  const id = newProjectId(new Date());
  const settings = { openRegistration: true, tokens: [], protectedMetadata: [] };
  await store.insert({ _id: id, name: "App", createdAt: new Date(), ...settings });
  commands = [];
  expect((await many(() => store.requireExisting(id))).map(({ status }) => status)).toEqual(
    Array(100).fill("fulfilled"),
  );
  expect(count("find")).toBeLessThanOrEqual(2);
  const none = await many(() => store.requireExisting(newProjectId(new Date())));
  expect(none.map((one) => one.status === "rejected" && one.reason.code)).toEqual(Array(100).fill("project-not-found"));
});

test("subscriptions of one moment to a new topic create it with one insert, and one of them says so", async () => {
  const store = createTopicStore(watched.db(database.name), createCounts());
  await store.ensureIndexes();
  const context = eventContext(newProjectId(new Date()), new Date());
  commands = [];
  const settled = await many(() => store.ensure(context, ["news", "olds"]));
  const ensured = settled.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
  expect(ensured.map(({ topics }) => topics.map(({ name }) => name).sort())).toEqual(Array(100).fill(["news", "olds"]));
  expect(ensured.flatMap(({ created }) => created)).toHaveLength(2);
  expect(count("insert")).toBe(2);
  expect(count("find")).toBeLessThan(10);
});
