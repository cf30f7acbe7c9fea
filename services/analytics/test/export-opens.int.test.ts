import { newDeviceId, newNotificationId, newProjectId } from "@herald/contracts";
import { type FreshDatabase, freshDatabase } from "@herald/testing";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createStores, type Stores } from "../src/stores/create-stores.ts";

let database: FreshDatabase;
let opens: Stores["opens"];
beforeAll(async () => {
  database = await freshDatabase();
  const stores = createStores(database.client.db(database.name));
  opens = stores.opens;
  await opens.ensureIndexes();
});
afterAll(() => database.drop());

const at = (seconds: number) => new Date(1_900_000_000_000 + seconds * 1_000);

/** Records opens of two notifications, many at the same moment. */
const record = async () => {
  const projectId = newProjectId(at(0));
  const notificationIds = [newNotificationId(at(0)), newNotificationId(at(1))] as const;
  const batch = Array.from({ length: 90 }, (_, index) => ({
    projectId,
    notificationId: notificationIds[index % 2] ?? notificationIds[0],
    deviceId: newDeviceId(at(0)),
    // Thirty opens of one moment, and sixty in pairs.
    at: at(index < 30 ? 500 : Math.floor(index / 2)),
    report: "r1",
  }));
  await opens.record(batch);
  return { projectId, notificationIds, batch };
};

const all = async (wanted: Omit<Parameters<typeof opens.export>[0], "after" | "limit">, limit: number) => {
  const found = [];
  for (let after: string | undefined; ; ) {
    const page = await opens.export({ ...wanted, limit, ...(after === undefined ? {} : { after }) });
    found.push(...page);
    if (page.length < limit) return found;
    after = page.at(-1)?._id;
  }
};

test.each([1, 7, 40, 1_000])("every open of a project comes once, by time, in pages of %i", async (limit) => {
  const { projectId, batch } = await record();
  await record();
  const found = await all({ projectId }, limit);
  expect(new Set(found.map(({ _id }) => _id)).size).toBe(batch.length);
  expect(found).toHaveLength(batch.length);
  const times = found.map((open) => open.at.getTime());
  expect(times).toEqual(times.toSorted((one, other) => one - other));
});

test("the opens of one notification come by id", async () => {
  const { projectId, notificationIds, batch } = await record();
  const [notificationId] = notificationIds;
  const found = await all({ projectId, notificationId }, 10);
  const wanted = batch.filter((open) => open.notificationId === notificationId);
  expect(found.map(({ _id }) => _id)).toEqual(wanted.map(({ deviceId }) => `${notificationId}/${deviceId}`).sort());
  const stranger = newProjectId(at(2));
  expect(await all({ projectId: stranger, notificationId }, 10)).toEqual([]);
});
