import { newNotificationId, newProjectId } from "@herald/contracts";
import { type FreshDatabase, freshDatabase } from "@herald/testing";
import { afterAll, beforeAll, expect, test } from "vitest";
import { deliveryCollection } from "../src/stores/delivery-document.ts";
import { createDeliveryStore } from "../src/stores/delivery-store.ts";
import { batchOf } from "./dead-letters-fixture.ts";

let database: FreshDatabase;
beforeAll(async () => {
  database = await freshDatabase();
});
afterAll(() => database.drop());

const now = new Date();
const claim = { at: now.getTime(), sequence: 7 };
/** Another message, which the stream stored in the same millisecond. */
const other = { ...claim, sequence: 8 };
const start = async () => {
  const db = database.client.db(database.name);
  const store = createDeliveryStore(db);
  const batch = batchOf(newProjectId(now), newNotificationId(now), 0, 2);
  const run = await store.start(batch, claim, now);
  expect(run).toMatchObject({ starts: 1, devices: [{ repeat: false }, { repeat: false }] });
  return { store, batch, rows: deliveryCollection(db) };
};

test("only a redelivery of the message that started a batch starts it again, as a possible repeat", async () => {
  const { store, batch } = await start();
  expect(await store.start(batch, other, now)).toBeUndefined();
  expect(await store.start(batch, claim, now)).toMatchObject({ starts: 2, devices: [{ repeat: true }, {}] });
});

test("the dead-letter handler claims the batch of the dead message, and again after a crash, but not another's", async () => {
  const { store, batch } = await start();
  const { projectId, batchId: id } = batch;
  expect(await store.claim({ projectId, id }, other, now, batch)).toBeUndefined();
  expect(await store.claim({ projectId, id }, claim, now, batch)).toMatchObject({ starts: 2 });
  expect(await store.claim({ projectId, id }, claim, now, batch)).toMatchObject({ starts: 3 });
});
