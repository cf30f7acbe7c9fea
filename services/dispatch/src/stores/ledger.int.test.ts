import { newNotificationId, newProjectId } from "@herald/contracts";
import { type FreshDatabase, freshDatabase } from "@herald/testing";
import { afterAll, beforeAll, expect, test } from "vitest";
import { childId, rootBatchId } from "../domain/batch.ts";
import { emptyTally } from "../domain/notification-counts.ts";
import { type DeliveryDocument, deliveryCollection } from "./delivery-document.ts";
import { createDeliveryStore } from "./delivery-store.ts";
import { createLedger } from "./ledger.ts";

let database: FreshDatabase;
beforeAll(async () => {
  database = await freshDatabase();
});
afterAll(() => database.drop());

const now = new Date("2030-01-01T12:00:00.000Z");
const later = new Date(now.getTime() + 300_000);
const afterThat = new Date(later.getTime() + 1);

test("what is open of a notification is known from the rows that are not final, and from all rows", async () => {
  const db = database.client.db(database.name);
  await createDeliveryStore(db).ensureIndexes();
  const of = { projectId: newProjectId(now), notificationId: newNotificationId(now) };
  const common = {
    ...of,
    platform: "ios",
    lane: "bulk",
    starts: 1,
    deviceIds: "",
    firstDeviceId: "",
    lastDeviceId: "",
  };
  let stored = 0;
  const row = (devices: number, change: Partial<DeliveryDocument>): DeliveryDocument => ({
    ...(common as unknown as DeliveryDocument),
    ...{ _id: rootBatchId(of.notificationId, stored++), generation: 1, storedAt: now },
    tally: { ...emptyTally, devices },
    ...change,
  });
  const settled = row(90, { state: "settled", childSize: 10, tally: { ...emptyTally, devices: 90, accepted: 90 } });
  const parent = row(60, { state: "final", childSize: 40, tally: { ...emptyTally, devices: 60, accepted: 60 } });
  await deliveryCollection(db).insertMany([
    row(100, { state: "final", tally: { ...emptyTally, devices: 100, accepted: 70, failed: 30 } }),
    row(100, { state: "started" }),
    settled,
    parent,
    row(40, { _id: childId(parent._id, 2), generation: 2, state: "waiting", dueAt: now }),
    row(100, { state: "waiting", dueAt: afterThat }),
    row(100, { state: "waiting", dueAt: afterThat, paused: true }),
    row(100, { state: "waiting", dueAt: afterThat, held: true }),
  ]);
  const ledger = createLedger(db);
  // Two of the batches have no row.
  const notification = { _id: of.notificationId, projectId: of.projectId, expanded: { batches: 9, devices: 900 } };
  const open = { devices: 100 + 10 + 40 + 100 + 100 + 2 * 100, paused: 100 };
  expect(await ledger.results(notification, { counted: false, later })).toEqual({ open });
  expect(await ledger.results(notification, { counted: true, later })).toEqual({
    open,
    counts: expect.objectContaining({ tally: expect.objectContaining({ accepted: 220, failed: 30, devices: 700 }) }),
  });
  const allStored = { ...notification, expanded: { batches: 7, devices: 700 } };
  expect((await ledger.results(allStored, { counted: false, later })).open.devices).toBe(350);
});
