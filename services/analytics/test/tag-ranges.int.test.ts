import { publish } from "@herald/bus";
import {
  newNotificationId,
  OpenGroupV1,
  Platform,
  ProjectDeletedV1,
  type ProjectId,
  type StatsRequest,
  UserErasedV1,
} from "@herald/contracts";
import { applyRetention } from "@herald/mongo";
import { toTags } from "@herald/rules";
import { eventually } from "@herald/testing";
import { afterAll, beforeAll, expect, test } from "vitest";
import { intervalsOf } from "../src/domain/intervals.ts";
import { deliveryDelta } from "../src/domain/stats-delta.ts";
import { rebuildStatistics } from "../src/rebuild/rebuild-statistics.ts";
import { retentionRules } from "../src/stores/create-stores.ts";
import {
  type AnalyticsTest,
  accept,
  messageId as id,
  log,
  opensAt,
  sample,
  startAnalyticsTest,
} from "./analytics-fixture.ts";

let t: AnalyticsTest;
beforeAll(async () => {
  t = await startAnalyticsTest();
});
afterAll(() => t?.stop());

const start = new Date("2030-02-26T00:00:00Z");
const dayMs = 86_400_000;
const values = ["spring", "v1.2 $off", "__proto__"];

type Sent = { readonly at: Date; readonly value: string; readonly platform: Platform; readonly count: number };

/** Sends over six days and the end of a month, at every quarter of the hour. */
const sends: readonly Sent[] = Array.from({ length: 300 }, (_, index) => ({
  at: new Date(start.getTime() + ((index * 7_919) % 576) * 900_000),
  value: values[index % values.length] ?? "",
  platform: Platform.options[index % 2] ?? "ios",
  count: 1 + (index % 5),
}));

/** Counts the sends of one project, as their events would be. */
const send = async (projectId: ProjectId, all: readonly Sent[]) => {
  const notificationId = newNotificationId(start);
  const deltas = all.map(({ at, value, platform, count }) =>
    deliveryDelta({
      ...accept({ projectId, notificationId }, at.toISOString(), count, platform),
      labels: { campaign: value },
    }),
  );
  await t.stores().deltas.put(deltas);
  await t.aggregated();
};

type Asked = Pick<StatsRequest, "from" | "to" | "interval" | "timeZone" | "platform">;
const whole: Asked = {
  from: "2030-02-20T00:00:00.000Z",
  to: "2030-03-10T00:00:00.000Z",
  interval: "day",
  timeZone: "UTC",
};

const sentByCampaign = async (projectId: ProjectId, asked: Asked) => {
  const { groups = [] } = await t.stats(projectId, { ...asked, by: "label:campaign" });
  return Object.fromEntries(groups.map(({ value, sent }) => [`${value} `, sent]));
};

/** The same statistics, computed from the sends. */
const expectedOf = ({ from, to, interval, timeZone, platform }: Asked) => {
  const intervals = intervalsOf(new Date(from), new Date(to), interval, timeZone);
  const [first, last] = [intervals[0]?.at ?? start, intervals.at(-1)?.end ?? start];
  const sums: Record<string, number> = {};
  for (const one of sends)
    if (one.at >= first && one.at < last && (platform ?? one.platform) === one.platform)
      sums[`${one.value} `] = (sums[`${one.value} `] ?? 0) + one.count;
  return sums;
};

/** Rebuilds as the command does, with analytics stopped. */
const rebuild = async () => {
  await t.app.stop();
  try {
    await rebuildStatistics(t.db, t.stores(), () => undefined);
  } finally {
    await t.restart();
  }
};

const ranges: readonly (readonly [name: string, asked: Asked])[] = [
  ["all of it", whole],
  ["one platform", { ...whole, platform: "android" }],
  [
    "days in Berlin",
    { ...whole, from: "2030-02-26T12:00:00.000Z", to: "2030-03-02T08:00:00.000Z", timeZone: "Europe/Berlin" },
  ],
  [
    "days in Kathmandu",
    { ...whole, from: "2030-02-26T12:00:00.000Z", to: "2030-03-02T08:00:00.000Z", timeZone: "Asia/Kathmandu" },
  ],
  [
    "hours on both sides of a day",
    { ...whole, interval: "hour", from: "2030-02-27T22:10:00.000Z", to: "2030-03-01T03:50:00.000Z" },
  ],
  [
    "hours on both sides of midnight",
    { ...whole, interval: "hour", from: "2030-02-28T21:00:00.000Z", to: "2030-03-01T02:00:00.000Z" },
  ],
  [
    "parts of hours",
    {
      ...whole,
      interval: "hour",
      from: "2030-02-27T06:20:00.000Z",
      to: "2030-02-27T07:10:00.000Z",
      timeZone: "Asia/Kolkata",
    },
  ],
];

test("groups of a label are exact in every range, also after a rebuild and for opens that arrive late", async () => {
  const { projectId } = sample(start);
  await send(projectId, sends);
  const all = async () => {
    for (const [name, asked] of ranges)
      expect([name, await sentByCampaign(projectId, asked)]).toEqual([name, expectedOf(asked)]);
  };
  for (const [, asked] of ranges) expect(Object.values(expectedOf(asked))).not.toEqual([]);
  await all();
  await rebuild();
  await all();

  const late = { projectId, notificationId: newNotificationId(start) };
  t.tags.set(late.notificationId, toTags({ labels: { campaign: "spring" } }) ?? []);
  await publish(t.bus, OpenGroupV1, opensAt(late, ["2030-02-27T10:00:00Z", "2030-02-27T23:50:00Z"], "ios"), id());
  const opened = async (from: string, to: string) =>
    (await t.stats(projectId, { ...whole, from, to, by: "label:campaign" })).groups?.map((one) => one.opened);
  await eventually(async () => expect(await opened("2030-02-26T00:00:00Z", "2030-03-01T00:00:00Z")).toContain(2));
  await t.aggregated();
  expect(await opened("2030-02-27T00:00:00Z", "2030-02-28T00:00:00Z")).toContain(2);
  expect(await opened("2030-02-28T00:00:00Z", "2030-03-01T00:00:00Z")).not.toContain(2);
  await all();
});

test("a rebuild keeps a day whose first deltas retention has removed", async () => {
  const { projectId } = sample(start);
  await send(projectId, sends);
  const before = await Promise.all(ranges.map(([, asked]) => sentByCampaign(projectId, asked)));
  const border = new Date("2030-02-27T10:30:00Z");
  await t.db.collection("retentionClaims").updateMany({}, { $set: { dueAt: new Date(0) } });
  const rules = retentionRules(t.stores(), {
    HERALD_ANALYTICS_RETENTION: 90 * dayMs,
    HERALD_ANALYTICS_STATISTICS_RETENTION: 800 * dayMs,
  });
  const now = () => new Date(border.getTime() + 90 * dayMs);
  await applyRetention({ db: t.db, rules, everyMs: 3_600_000, now, log }, new AbortController().signal);
  const deltas = t.db.collection("statsDeltas");
  expect(await deltas.countDocuments({ projectId, at: { $lt: border } })).toBe(0);
  expect(await deltas.countDocuments({ projectId, at: { $lt: new Date("2030-02-28T00:00:00Z") } })).toBeGreaterThan(0);
  await rebuild();
  expect(await Promise.all(ranges.map(([, asked]) => sentByCampaign(projectId, asked)))).toEqual(before);
});

test("an erased user stays in the figures, and a deleted project leaves none", async () => {
  const { projectId } = sample(start);
  await send(projectId, sends);
  const at = new Date().toISOString();
  await publish(t.bus, UserErasedV1, { project_id: projectId, user_id: "u_1", at }, id());
  await eventually(async () =>
    expect(await t.db.collection("erasures").countDocuments({ projectId })).toBeGreaterThan(0),
  );
  expect(await sentByCampaign(projectId, whole)).toEqual(expectedOf(whole));
  await publish(t.bus, ProjectDeletedV1, { project_id: projectId, at }, id());
  await eventually(async () => expect(await t.db.collection("rollups").countDocuments({ projectId })).toBe(0));
  expect(await sentByCampaign(projectId, whole)).toEqual({});
});
