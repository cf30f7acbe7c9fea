import { newNotificationId, newProjectId, type ProjectId } from "@herald/contracts";
import { type FreshDatabase, freshDatabase } from "@herald/testing";
import { type CommandStartedEvent, type Document, MongoClient } from "mongodb";
import { afterAll, beforeAll, expect, test } from "vitest";
import { firstPart } from "../domain/expansions.ts";
import { planRollout } from "../domain/rollout.ts";
import { notificationHints } from "./notification-document.ts";
import { toAccepted } from "./notification-steps.ts";
import { createNotificationStore, type NotificationStore } from "./notification-store.ts";

let database: FreshDatabase;
let client: MongoClient;
let store: NotificationStore;
const commands: Document[] = [];
beforeAll(async () => {
  database = await freshDatabase();
  client = await new MongoClient(database.url, { monitorCommands: true }).connect();
  client.on("commandStarted", ({ command }: CommandStartedEvent) => commands.push(command));
  store = createNotificationStore(client.db(database.name));
  await store.ensureIndexes();
});
afterAll(async () => {
  await client.close();
  await database.drop();
});

const now = new Date("2030-01-01T12:00:00.000Z");
const hour = 3_600_000;

/** Stores a send that waits for its time, in an hour. */
const scheduled = async (projectId: ProjectId) => {
  const notificationId = newNotificationId(now);
  const sendAt = new Date(now.getTime() + hour).toISOString();
  const expiresAt = new Date(now.getTime() + 24 * hour).toISOString();
  const content = { title: "Hello", targets: ["topic:news"] };
  await store.insert({ projectId, notificationId, content, acceptedAt: now.toISOString(), sendAt, expiresAt }, now);
  return async () => (await store.getState(projectId, notificationId))?.nextAt;
};

test("what waits although its time has come is checked: of a project, whose notifications alone are read, or of all", async () => {
  const [project, other] = [newProjectId(now), newProjectId(now)];
  const [one, another] = [await scheduled(project), await scheduled(other)];
  const early = new Date(now.getTime() + hour - 1);
  const late = new Date(now.getTime() + 2 * hour);
  for (const scope of [{ projectId: project }, {}]) await store.checkScheduled(scope, early);
  expect([await one(), await another()]).not.toContainEqual(early);
  await store.checkScheduled({ projectId: project }, late);
  expect(await one()).toEqual(late);
  expect(await another()).not.toEqual(late);
  expect(commands.findLast(({ update }) => update)).toMatchObject({ updates: [{ hint: notificationHints.status }] });
  await store.checkScheduled({}, late);
  expect(await another()).toEqual(late);
});

test("the part of a rollout that was judged before a pause and a resume does not begin, and they are not forgotten", async () => {
  const [projectId, notificationId] = [newProjectId(now), newNotificationId(now)];
  const sendAt = new Date(now.getTime() + hour);
  const rollout = { stop_if: { failed: 0.05 } };
  const plan = { ...planRollout(notificationId, rollout, 4_000), begun: 1, past: { n: 0, batches: 0, devices: 0 } };
  const content = { title: "Hello", targets: ["topic:news"], rollout };
  const expansions = firstPart(plan, sendAt);
  const expiresAt = new Date(now.getTime() + 24 * hour).toISOString();
  const times = { acceptedAt: now.toISOString(), sendAt: sendAt.toISOString(), expiresAt };
  await store.insert({ projectId, notificationId, content, ...times }, now, expansions);
  const read = async () => {
    const known = await store.getState(projectId, notificationId);
    if (!known?.expansions) throw new Error("it is not stored");
    return { ...known, expansions: known.expansions };
  };
  const early = await read();
  const before = { outcomes: 100, failed: 60 };
  await store.pause(early, { at: now });
  await store.resume(await read(), now, { id: "root", name: "root" }, before);
  const begin = (known: typeof early) => store.advance(projectId, notificationId, toAccepted(known, known.expansions));
  expect(await begin(early)).toBe(false);
  expect(await begin(await read())).toBe(true);
  expect((await read()).expansions.rollout?.before).toEqual(before);
});
