import { newNotificationId, newProjectId, type OutboxEvent } from "@herald/contracts";
import { createLogger } from "@herald/kit";
import { eventually, type FreshDatabase, freshDatabase } from "@herald/testing";
import { afterAll, beforeAll, expect, test } from "vitest";
import { emptyTally } from "../domain/notification-counts.ts";
import { createEscalationStore } from "./escalation-store.ts";
import { notificationUnopened } from "./events.ts";
import { notificationCollection } from "./notification-document.ts";
import { createNotificationStore } from "./notification-store.ts";
import { createDispatchOutbox } from "./stores.ts";

let database: FreshDatabase;
beforeAll(async () => {
  database = await freshDatabase();
  await createNotificationStore(database.client.db(database.name)).ensureIndexes();
});
afterAll(() => database.drop());

const now = new Date("2030-01-01T12:00:00.000Z");
const due = new Date(now.getTime() + 60_000);

/** Two replicas' stores, and a send to a user whose end is stored. */
const endedSend = async () => {
  const db = database.client.db(database.name);
  const [notifications, escalations, others] = [
    createNotificationStore(db),
    createEscalationStore(db),
    createEscalationStore(db),
  ];
  const [projectId, notificationId] = [newProjectId(now), newNotificationId(now)];
  const content = { title: "Hello", targets: ["user:ann"], escalate_after: 60 };
  const expiresAt = new Date(now.getTime() + 3_600_000).toISOString();
  await notifications.insert({ projectId, notificationId, content, acceptedAt: now.toISOString(), expiresAt }, now);
  const known = await notifications.getState(projectId, notificationId);
  const written = known && (await notifications.finish(known, { tally: emptyTally, failures: {}, now }));
  if (!written) throw new Error("it has not ended");
  const outboxOf = async () => {
    const found = await notificationCollection(db).findOne({ _id: notificationId });
    return found?.outbox?.map(({ id }) => id.slice(notificationId.length + 1, notificationId.length + 10));
  };
  return { db, escalations, others, projectId, notificationId, written, outboxOf };
};

test("of two replicas one claims what is due, and of two claims the last one stores the events", async () => {
  const { escalations, others } = await endedSend();
  expect(await escalations.takeDue(new Date(due.getTime() - 1))).toEqual([]);
  const claimed = (await Promise.all([escalations.takeDue(due), others.takeDue(due)])).flat();
  expect(claimed).toHaveLength(1);
  expect(await others.takeDue(due)).toEqual([]);
  const [first] = claimed;
  const [second] = await others.takeDue(new Date(due.getTime() + 60_000));
  if (!first || !second) throw new Error("it is not claimed");
  expect(second.escalation.at).toEqual(due);
  const events = [notificationUnopened(first, { user_id: "ann", reason: "unopened" }, due)];
  expect(await escalations.end(first, events)).toBe(false);
  expect(await others.end(second, events)).toBe(true);
  expect(await others.end(second, events)).toBe(false);
});

test("its events stay in the outbox when those of the end, which were stored before, are published late", async () => {
  const { db, escalations, written, outboxOf } = await endedSend();
  const reached = Promise.withResolvers<void>();
  const go = Promise.withResolvers<void>();
  const publish = async (_: readonly OutboxEvent[]) => {
    reached.resolve();
    await go.promise;
  };
  const outbox = createDispatchOutbox(db, { publish, log: createLogger({ service: "test", level: "silent" }) });
  const published = outbox.publishEnd(written);
  await reached.promise;
  const [claimed] = await escalations.takeDue(due);
  if (!claimed) throw new Error("it is not due");
  await escalations.end(claimed, [notificationUnopened(claimed, { user_id: "ann", reason: "unopened" }, due)]);
  go.resolve();
  await published;
  await eventually(async () => expect(await outboxOf()).not.toContain("completed"));
  expect(await outboxOf()).toEqual(["unopened/"]);
  await outbox.stop();
});
