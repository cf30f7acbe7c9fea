import { newNotificationId, newProjectId } from "@herald/contracts";
import { type FreshDatabase, freshDatabase } from "@herald/testing";
import { afterAll, beforeAll, expect, test } from "vitest";
import { emptyTally } from "../domain/notification-counts.ts";
import { createEscalationStore } from "./escalation-store.ts";
import { notificationUnopened } from "./events.ts";
import { escalationGraceMs } from "./notification-document.ts";
import { createNotificationStore } from "./notification-store.ts";

let database: FreshDatabase;
beforeAll(async () => {
  database = await freshDatabase();
  await createNotificationStore(database.client.db(database.name)).ensureIndexes();
});
afterAll(() => database.drop());

const now = new Date("2030-01-01T12:00:00.000Z");
const due = new Date(now.getTime() + 60_000 + escalationGraceMs);

test("of two replicas one claims what is due, and what the first of two claims finds is published", async () => {
  const db = database.client.db(database.name);
  const [one, other] = [createEscalationStore(db), createEscalationStore(db)];
  const [projectId, notificationId] = [newProjectId(now), newNotificationId(now)];
  const content = { title: "Hello", targets: ["user:ann"], escalate_after: 60 };
  const expiresAt = new Date(now.getTime() + 3_600_000).toISOString();
  const send = { projectId, notificationId, content, acceptedAt: now.toISOString(), expiresAt };
  const notifications = createNotificationStore(db);
  await notifications.insert(send, now);
  const at = (ms: number) => new Date(due.getTime() + ms);
  expect(await one.takeDue(due)).toEqual({ taken: [], more: false });
  const known = await notifications.getState(projectId, notificationId);
  if (!known) throw new Error("it is not stored");
  await notifications.finish(known, { tally: emptyTally, failures: {}, now });
  expect((await one.takeDue(at(59_999))).taken).toEqual([]);
  const claims = await Promise.all([one.takeDue(at(60_000)), other.takeDue(at(60_000))]);
  const [first, ...more] = claims.flatMap(({ taken }) => taken);
  expect(more).toEqual([]);
  const [second] = (await other.takeDue(at(120_000))).taken;
  if (!first || !second) throw new Error("it is not claimed");
  const [found, foundLater] = (["unopened", "not-delivered"] as const).map((reason) => [
    notificationUnopened(first, { user_id: "ann", reason }, due),
  ]);
  // Reading took longer than the claim.
  expect(await one.decide(first, found ?? [])).toBe(true);
  expect(await other.decide(second, foundLater ?? [])).toBe(false);
  const [third] = (await one.takeDue(at(180_000))).taken;
  expect(third?.escalation.events).toEqual(found);
  if (third) await one.end(third);
  expect(await other.takeDue(at(86_400_000))).toEqual({ taken: [], more: false });
});
