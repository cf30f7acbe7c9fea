import { publish, sendRequest } from "@herald/bus";
import {
  DeliveryAcceptedV1,
  DeliveryFailedV1,
  NotificationAcceptedV1,
  OpenGroupV1,
  openRequests,
} from "@herald/contracts";
import { applyRetention } from "@herald/mongo";
import { eventually } from "@herald/testing";
import { afterAll, beforeAll, expect, test } from "vitest";
import { rebuildStatistics } from "../src/rebuild/rebuild-statistics.ts";
import { retentionRules } from "../src/stores/create-stores.ts";
import {
  type AnalyticsTest,
  accept,
  fail,
  messageId as id,
  idsOf,
  log,
  opensAt,
  type Subject,
  sample,
  startAnalyticsTest,
} from "./analytics-fixture.ts";

let t: AnalyticsTest;
beforeAll(async () => {
  t = await startAnalyticsTest();
});
afterAll(() => t?.stop());

/** All statistics of a notification in the API: of all platforms, and of each. */
const everything = async ({ projectId, notificationId }: Subject, range: { from?: string; to?: string } = {}) => {
  const asked = [undefined, "ios", "android", "web"] as const;
  const series = await Promise.all(
    asked.map((platform) => t.stats(projectId, { ...range, notificationId, ...(platform ? { platform } : {}) })),
  );
  const opens = await sendRequest(t.bus, openRequests.count, { projectId, notificationIds: [notificationId] });
  return { series, ofProject: await t.stats(projectId, range), opens };
};

/** Rebuilds as the command does, with analytics stopped. */
const rebuild = async (times = 1) => {
  await t.app.stop();
  try {
    for (let time = 0; time < times; time++) await rebuildStatistics(t.db, t.stores(), () => undefined);
  } finally {
    await t.restart();
  }
};

test("two rebuilds give the same figures for every platform, and later events count once", async () => {
  const one = sample();
  const opened = opensAt(one, ["2030-03-30T12:30:00Z", "2030-03-30T13:30:00Z"], "android");
  const accepted = accept(one, "2030-03-30T12:00:00Z", 4);
  const sendAt = "2030-03-30T12:29:00Z";
  await publish(
    t.bus,
    NotificationAcceptedV1,
    { ...idsOf(one), at: "2030-03-30T12:00:00Z", send_at: sendAt, topics: ["news"] },
    id(),
  );
  await eventually(async () => {
    expect(await t.stores().notificationFacts.sendTimes([one.notificationId])).toHaveProperty("size", 1);
  });
  await publish(t.bus, DeliveryAcceptedV1, accepted, id());
  await publish(t.bus, DeliveryFailedV1, fail(one, "2030-03-30T12:00:00Z", ["internal", "unregistered"]), id());
  await publish(t.bus, OpenGroupV1, opened, id());
  await publish(t.bus, OpenGroupV1, opensAt(one, ["2030-03-30T12:31:00Z"], "ios"), id());
  await publish(t.bus, OpenGroupV1, opensAt(one, ["2030-03-30T12:32:00Z"]), id());
  await t.settled();
  const before = await everything(one);
  expect(before.series.map(({ totals }) => [totals.sent, totals.failed, totals.opened])).toEqual([
    [4, 2, 4],
    [4, 2, 1],
    [0, 0, 2],
    [0, 0, 0],
  ]);
  await rebuild(2);
  expect(await everything(one)).toEqual(before);
  await publish(t.bus, DeliveryAcceptedV1, accepted, id());
  await publish(t.bus, OpenGroupV1, opened, id());
  await publish(t.bus, OpenGroupV1, opensAt(one, ["2030-03-30T14:30:00Z"]), id());
  await t.settled();
  expect(await t.totals(one.projectId)).toEqual({ sent: 4, failed: 2, opened: 5 });
});

test("rows older than the retention are removed; their figures survive a rebuild", async () => {
  const old = sample(new Date("2030-03-01T00:00:00Z"));
  // A project of its own, so that retention walks to it, and one with rows on both sides of the border.
  const stranger = sample(new Date("2030-03-01T00:00:00Z"));
  const young = { projectId: old.projectId, notificationId: sample(new Date("2030-03-10T10:40:00Z")).notificationId };
  for (const one of [old, stranger]) {
    await publish(t.bus, DeliveryAcceptedV1, accept(one, "2030-03-01T00:10:00Z", 5, "web"), id());
    await publish(t.bus, OpenGroupV1, opensAt(one, ["2030-03-01T00:20:00Z", "2030-03-09T09:00:00Z"], "web"), id());
    await publish(t.bus, OpenGroupV1, opensAt(one, ["2030-03-10T11:00:00Z"], "web"), id());
  }
  await publish(t.bus, DeliveryAcceptedV1, accept(young, "2030-03-10T10:40:00Z", 3, "ios"), id());
  await publish(t.bus, OpenGroupV1, opensAt(young, ["2030-03-10T10:41:00Z", "2030-03-10T12:00:00Z"], "ios"), id());
  await t.settled();
  const range = { from: "2030-03-01T00:00:00.000Z", to: "2030-03-11T00:00:00.000Z" };
  const all = [old, stranger, young];
  const before = await Promise.all(all.map((one) => everything(one, range)));
  expect(before.map(({ opens }) => Object.values(opens.counts))).toEqual([[3], [3], [2]]);

  const border = new Date("2030-03-09T10:30:00Z");
  await removeRowsBefore(border);
  const rows = t.db.collection("opens");
  const mine = { projectId: { $in: [old.projectId, stranger.projectId] } };
  expect(await rows.countDocuments({ ...mine, at: { $lt: border } })).toBe(0);
  expect(await rows.countDocuments(mine)).toBe(4);
  const kept = await t.db.collection("statsDeltas").find(mine).toArray();
  expect(kept.map(({ kind }) => kind).toSorted()).toEqual(["deliveries", "opens", "opens", "opens"]);
  expect(await Promise.all(all.map((one) => everything(one, range)))).toEqual(before);

  await rebuild(2);
  expect(await Promise.all(all.map((one) => everything(one, range)))).toEqual(before);
  // A second run finds nothing more to remove.
  await removeRowsBefore(border);
  expect(await rows.countDocuments(mine)).toBe(4);
});

/** Removes the rows older than a time, as retention does. */
const removeRowsBefore = async (border: Date) => {
  const config = {
    HERALD_ANALYTICS_RETENTION: 90 * 86_400_000,
    HERALD_ANALYTICS_STATISTICS_RETENTION: 800 * 86_400_000,
  };
  await t.db.collection("retentionClaims").updateMany({}, { $set: { dueAt: new Date(0) } });
  const now = () => new Date(border.getTime() + config.HERALD_ANALYTICS_RETENTION);
  const rules = retentionRules(t.stores(), config);
  await applyRetention({ db: t.db, rules, everyMs: 3_600_000, now, log }, new AbortController().signal);
};
