import { newDeviceId, newNotificationId, newProjectId } from "@herald/contracts";
import { ensureIndexes } from "@herald/mongo";
import { type FreshDatabase, freshDatabase } from "@herald/testing";
import { afterAll, beforeAll, expect, test } from "vitest";
import { deliveryCollection, deliveryIndexes } from "../src/stores/delivery-document.ts";
import { createLedger } from "../src/stores/ledger.ts";

let database: FreshDatabase;
beforeAll(async () => {
  database = await freshDatabase();
});
afterAll(() => database.drop());

test("each row counts once, though rows are written while they are summed up", async () => {
  const db = database.client.db(database.name);
  const rows = deliveryCollection(db);
  await ensureIndexes(rows, deliveryIndexes);
  const at = new Date();
  const [projectId, notificationId] = [newProjectId(at), newNotificationId(at)];
  // More than the 101 documents that a cursor returns in its first batch by default.
  const count = 400;
  const ids = Array.from({ length: count }, (_, page) => `${notificationId}/${page}/0`);
  const tally = { devices: 500, accepted: 499, failed: 1, expired: 0, cancelled: 0 };
  await rows.insertMany(
    ids.map((_id) => {
      const id = newDeviceId(at);
      return {
        _id,
        projectId,
        notificationId,
        platform: "ios" as const,
        lane: "broadcast" as const,
        generation: 1,
        state: "final" as const,
        starts: 1,
        deviceIds: id,
        firstDeviceId: id,
        lastDeviceId: id,
        tally,
        failures: { unregistered: 1 },
        storedAt: at,
      };
    }),
  );

  const { sums } = createLedger(db);
  let summing = true;
  const writing = (async () => {
    for (let turn = 0; summing; turn++)
      await rows.updateMany(
        { _id: { $in: ids.filter((_, n) => n % 4 === turn % 4) } },
        { $set: { settledAt: new Date() } },
      );
  })();
  try {
    for (let time = 0; time < 30; time++)
      expect(await sums(projectId, notificationId)).toEqual({
        tally: { devices: 500 * count, accepted: 499 * count, failed: count, expired: 0, cancelled: 0 },
        failures: { unregistered: count },
        finalRoots: count,
      });
  } finally {
    summing = false;
    await writing;
  }
});
