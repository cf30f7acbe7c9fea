import { newNotificationId, newProjectId } from "@herald/contracts";
import { type FreshDatabase, freshDatabase } from "@herald/testing";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createEscalationStore } from "./escalation-store.ts";
import { createNotificationStore } from "./notification-store.ts";

let database: FreshDatabase;
beforeAll(async () => {
  database = await freshDatabase();
  await createNotificationStore(database.client.db(database.name)).ensureIndexes();
});
afterAll(() => database.drop());

const now = new Date("2030-01-01T12:00:00.000Z");
const due = new Date(now.getTime() + 60_000);

test("of two replicas one claims what is due, and another claims it again until its events are published", async () => {
  const db = database.client.db(database.name);
  const [one, other] = [createEscalationStore(db), createEscalationStore(db)];
  const [projectId, notificationId] = [newProjectId(now), newNotificationId(now)];
  const content = { title: "Hello", targets: ["user:ann"], escalate_after: 60 };
  const expiresAt = new Date(now.getTime() + 3_600_000).toISOString();
  const send = { projectId, notificationId, content, acceptedAt: now.toISOString(), expiresAt };
  await createNotificationStore(db).insert(send, now);
  expect(await one.takeDue(new Date(due.getTime() - 1))).toEqual([]);
  const [first, ...more] = (await Promise.all([one.takeDue(due), other.takeDue(due)])).flat();
  expect(more).toEqual([]);
  expect(await other.takeDue(due)).toEqual([]);
  const later = new Date(due.getTime() + 60_000);
  const [second] = await other.takeDue(later);
  expect(second).toMatchObject({ _id: notificationId, escalation: { at: due } });
  if (!first || !second) throw new Error("it is not claimed");
  // It was late: the claim is another one's now.
  await one.end(first);
  const latest = new Date(later.getTime() + 60_000);
  const [third] = await one.takeDue(latest);
  expect(third).toMatchObject({ escalation: { at: due } });
  if (third) await one.end(third);
  expect(await other.takeDue(new Date(latest.getTime() + 60_000))).toEqual([]);
});
