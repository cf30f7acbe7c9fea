import { publish } from "@herald/bus";
import {
  DeliveryAcceptedV1,
  DeliveryFailedV1,
  NotificationAcceptedV1,
  newNotificationId,
  OpenGroupV1,
  type Platform,
  type ProjectId,
  type StatsRequest,
} from "@herald/contracts";
import { applyRetention } from "@herald/mongo";
import { toTags } from "@herald/rules";
import { eventually } from "@herald/testing";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { aggregateDeltas } from "../src/domain/aggregate.ts";
import { deliveryDelta } from "../src/domain/stats-delta.ts";
import { createAggregate } from "../src/jobs/aggregate-stats.ts";
import { rebuildStatistics } from "../src/rebuild/rebuild-statistics.ts";
import { retentionRules } from "../src/stores/create-stores.ts";
import {
  type AnalyticsTest,
  accept,
  acceptedAt,
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

const noon = "2030-03-30T12:00:00Z";
const later = "2030-03-30T14:20:00Z";
type Tagged = { kind?: string; labels?: Record<string, string> };

/** Publishes the events of a notification that is sent to some devices and opened on some. */
const send = async (
  { projectId }: Pick<Subject, "projectId">,
  tagged: Tagged,
  { sent = 0, failed = 0, opened = 0, platform = "ios" as Platform, at = noon },
) => {
  const one = { projectId, notificationId: newNotificationId(acceptedAt) };
  const tags = toTags(tagged);
  if (tags) t.tags.set(one.notificationId, tags);
  if (sent > 0) await publish(t.bus, DeliveryAcceptedV1, { ...accept(one, at, sent, platform), ...tagged }, id());
  if (failed > 0)
    await publish(t.bus, DeliveryFailedV1, { ...fail(one, at, Array(failed).fill("internal")), ...tagged }, id());
  if (opened > 0) await publish(t.bus, OpenGroupV1, opensAt(one, Array(opened).fill(later), platform), id());
  return one;
};

const groups = async (projectId: ProjectId, request: Partial<StatsRequest>) => {
  const { groups = [], other, limit_reached } = await t.stats(projectId, request);
  const figures = groups.map(({ value, sent, failed, opened }) => [value, sent, failed, opened]);
  return { figures, ...(other && { other }), ...(limit_reached && { limit_reached }) };
};

/** All statistics of a project in the API: by kind, label, topic and platform. */
const everything = (projectId: ProjectId) =>
  Promise.all([
    t.stats(projectId),
    ...(["kind", "label:campaign", "label:team", "topic", "platform"] as const).map((by) => t.stats(projectId, { by })),
    t.stats(projectId, { tag: "label/campaign/spring" }),
    t.stats(projectId, { tag: "kind/news", platform: "web" }),
  ]);

/** Rebuilds as the command does, with analytics stopped. */
const rebuild = async () => {
  await t.app.stop();
  try {
    await rebuildStatistics(t.db, t.stores(), () => undefined);
  } finally {
    await t.restart();
  }
};

describe("statistics by kind and label", () => {
  test("count sends and opens once for each, by platform and over time, and a rebuild gives the same", async () => {
    const { projectId } = sample();
    await send({ projectId }, { kind: "news", labels: { campaign: "spring" } }, { sent: 5, failed: 2, opened: 3 });
    await send(
      { projectId },
      { kind: "news", labels: { campaign: "fall", team: "a" } },
      { sent: 4, opened: 1, platform: "web" },
    );
    await send({ projectId }, { labels: { campaign: "spring" } }, { sent: 1, opened: 1, platform: "android" });
    await send({ projectId }, {}, { sent: 10, opened: 2 });
    await t.settled();
    expect((await groups(projectId, { by: "label:campaign" })).figures).toEqual([
      ["spring", 6, 2, 4],
      ["fall", 4, 0, 1],
    ]);
    expect((await groups(projectId, { by: "label:team" })).figures).toEqual([["a", 4, 0, 1]]);
    expect((await groups(projectId, { by: "kind" })).figures).toEqual([["news", 9, 2, 4]]);
    expect((await groups(projectId, { by: "kind", platform: "web" })).figures).toEqual([["news", 4, 0, 1]]);
    expect((await groups(projectId, { by: "label:none" })).figures).toEqual([]);
    expect((await groups(projectId, { by: "platform" })).figures).toEqual([
      ["ios", 15, 2, 5],
      ["web", 4, 0, 1],
      ["android", 1, 0, 1],
    ]);
    expect((await groups(projectId, { by: "platform", tag: "kind/news" })).figures).toEqual([
      ["ios", 5, 2, 3],
      ["web", 4, 0, 1],
    ]);
    expect(await t.totals(projectId)).toEqual({ sent: 20, failed: 2, opened: 7 });
    const spring = await t.stats(projectId, { tag: "label/campaign/spring" });
    expect(spring.totals).toMatchObject({
      sent: 6,
      failed: 2,
      opened: 4,
      open_rate: 0.6667,
      failures: { internal: 2 },
    });
    expect(spring.series.filter(({ sent, opened }) => sent + opened > 0)).toMatchObject([
      { at: "2030-03-30T12:00:00.000Z", sent: 6, failed: 2, opened: 0, open_rate: 0 },
      { at: "2030-03-30T14:00:00.000Z", sent: 0, failed: 0, opened: 4, open_rate: null },
    ]);
    expect(await t.totals(sample().projectId, { tag: "label/campaign/spring" })).toMatchObject({ sent: 0 });

    const before = await everything(projectId);
    await rebuild();
    expect(await everything(projectId)).toEqual(before);
  });

  test("count a repeated event, a repeated report and an open in two reports once", async () => {
    const { projectId, notificationId } = sample();
    const tagged = { kind: "news", labels: { campaign: "spring" } };
    t.tags.set(notificationId, toTags(tagged) ?? []);
    const delivered = { ...accept({ projectId, notificationId }, noon, 3), ...tagged };
    const report = opensAt({ projectId, notificationId }, [later], "ios");
    for (let time = 0; time < 3; time++) {
      await publish(t.bus, DeliveryAcceptedV1, delivered, id());
      await publish(t.bus, OpenGroupV1, report, id());
    }
    await t.settled();
    expect((await groups(projectId, { by: "kind" })).figures).toEqual([["news", 3, 0, 1]]);
    const other = opensAt({ projectId, notificationId }, [later], "ios");
    await publish(t.bus, OpenGroupV1, { ...other, opens: [...report.opens, ...other.opens] }, id());
    await t.settled();
    expect((await groups(projectId, { by: "kind" })).figures).toEqual([["news", 3, 0, 2]]);
  });

  test("cost a project without them nothing", async () => {
    const { projectId } = sample();
    await send({ projectId }, {}, { sent: 3, failed: 1, opened: 2 });
    await t.settled();
    expect(await t.db.collection("tagValues").countDocuments({ projectId })).toBe(0);
    const scopes = await t.db.collection("rollups").distinct("scope", { projectId });
    expect(scopes.map((scope) => String(scope).split("/")[0]).toSorted()).toEqual(["hours", "project", "total"]);
    const deltas = await t.db.collection("statsDeltas").find({ projectId }).toArray();
    expect(deltas.map(({ kind }) => kind).toSorted()).toEqual(["deliveries", "opens"]);
    expect(JSON.stringify(deltas)).not.toContain("tags");
  });

  test("of topics are those of the notifications to them, in each of their topics", async () => {
    const { projectId } = sample();
    const both = await send({ projectId }, {}, { sent: 3, opened: 1 });
    const one = await send({ projectId }, {}, { sent: 2 });
    await send({ projectId }, {}, { sent: 7 });
    await publish(t.bus, NotificationAcceptedV1, { ...idsOf(both), at: noon, topics: ["news", "sport"] }, id());
    await publish(t.bus, NotificationAcceptedV1, { ...idsOf(one), at: noon, topics: ["sport"] }, id());
    await eventually(async () =>
      expect((await groups(projectId, { by: "topic" })).figures).toEqual([
        ["sport", 5, 0, 1],
        ["news", 3, 0, 1],
      ]),
    );
  });
});

describe("values beyond the limit", () => {
  /** Counts one send per value and aggregates in this process, beside the running analytics. */
  const counted = (projectId: ProjectId, values: readonly string[], name = "campaign") =>
    countedLabels(
      projectId,
      values.map((value) => ({ [name]: value })),
    );
  const countedLabels = async (projectId: ProjectId, labels: readonly Record<string, string>[]) => {
    const { deltas, ...stores } = t.stores();
    const one = { projectId, notificationId: newNotificationId(acceptedAt) };
    await deltas.put(labels.map((each) => deliveryDelta({ ...accept(one, noon, 1), labels: each })));
    const aggregate = createAggregate({ deltas, ...stores });
    await eventually(async () => {
      await aggregate();
      expect(await t.db.collection("statsDeltas").countDocuments({ projectId, aggregated: false })).toBe(0);
    });
  };
  const names = (count: number, prefix: string) =>
    Array.from({ length: count }, (_, at) => `${prefix}${String(at).padStart(4, "0")}`);

  test("are counted together and named, and stay so after a rebuild", async () => {
    const { projectId } = sample();
    await counted(projectId, names(999, "a"));
    await counted(projectId, ["b0", "b1", "b2"]);
    await counted(projectId, ["a0001", "b0", "b2", "c"]);
    const read = async () => {
      const found = await t.stats(projectId, { by: "label:campaign" });
      const { groups = [], other } = found;
      return { first: groups.slice(0, 3).map(({ value, sent }) => [value, sent]), count: groups.length, other };
    };
    const expected = {
      first: [
        ["a0001", 2],
        ["b0", 2],
        ["a0000", 1],
      ],
      count: 1_000,
      other: { sent: 4, failed: 0, opened: 0, open_rate: 0, values: expect.arrayContaining(["b1", "b2", "c"]) },
    };
    expect(await read()).toMatchObject(expected);
    expect(await t.stats(projectId, { tag: "label/campaign/b1" })).toMatchObject({
      limit_reached: true,
      totals: { sent: 0 },
    });
    expect(await t.stats(projectId, { tag: "label/campaign/b0" })).not.toHaveProperty("limit_reached");
    await rebuild();
    expect(await read()).toMatchObject(expected);
  });

  test("include labels beyond the hundredth, each device once", async () => {
    const { projectId } = sample();
    await countedLabels(
      projectId,
      names(100, "l").map((name) => ({ [name]: "x" })),
    );
    await counted(projectId, ["x", "y"], "more");
    expect(await groups(projectId, { by: "label:more" })).toEqual({ figures: [], limit_reached: true });
    expect((await groups(projectId, { by: "label:l0099" })).figures).toEqual([["x", 1, 0, 0]]);
    expect(await t.db.collection("rollups").findOne({ projectId, scope: "other/label" })).toMatchObject({
      quarters: { 0: { sent: { ios: 2 } } },
    });
    expect(await t.db.collection("tagValues").countDocuments({ projectId })).toBe(101);
  });

  test("are the same for a run that a crash repeats, and for two processes at once", async () => {
    const { projectId } = sample();
    await t.app.stop();
    const [one, other] = [t.stores(), t.stores()];
    const subject = { projectId, notificationId: newNotificationId(acceptedAt) };
    const values = names(1_100, "v");
    const batch = values.map((value) => deliveryDelta({ ...accept(subject, noon, 1), labels: { campaign: value } }));
    const [first, second] = await Promise.all([
      one.tagValues.scopesOf(batch),
      other.tagValues.scopesOf(batch.toReversed()),
    ]);
    const at = new Date(noon);
    const scopes = values.map((value) => first(projectId, `label/campaign/${value}`, at));
    expect(values.map((value) => second(projectId, `label/campaign/${value}`, at))).toEqual(scopes);
    expect(scopes.filter((scope) => scope === "other/label/campaign")).toHaveLength(100);
    // A process with an empty cache decides the same.
    const third = await t.stores().tagValues.scopesOf(batch);
    expect(values.map((value) => third(projectId, `label/campaign/${value}`, at))).toEqual(scopes);
    const changes = aggregateDeltas(batch, first);
    expect(changes.find(({ scope }) => scope === "other/label/campaign")?.adds.get("quarters.0.sent.ios")).toBe(100);
    await t.restart();
  });
});

test("retention removes the figures of a month with its values, and no others", async () => {
  const { projectId } = sample();
  for (const at of ["2027-01-10T10:00:00Z", noon])
    await send({ projectId }, { kind: "news", labels: { campaign: "spring" } }, { sent: 1, at });
  await t.settled();
  const rollups = t.db.collection("rollups");
  const tagged = { projectId, scope: { $regex: /^(kind|label|hour|day)\// } };
  // The two tags by the hour, and all values of their dimensions by the hour and by the day.
  expect(await rollups.countDocuments(tagged)).toBe(12);
  const day = 86_400_000;
  const config = { HERALD_ANALYTICS_RETENTION: 90 * day, HERALD_ANALYTICS_STATISTICS_RETENTION: 800 * day };
  const rules = retentionRules(t.stores(), config);
  await t.db.collection("retentionClaims").updateMany({}, { $set: { dueAt: new Date(0) } });
  const now = () => new Date("2030-04-01T00:00:00Z");
  await applyRetention({ db: t.db, rules, everyMs: 3_600_000, now, log }, new AbortController().signal);
  expect(await rollups.countDocuments(tagged)).toBe(6);
  expect(await rollups.countDocuments({ ...tagged, hour: { $lt: new Date("2029-01-01") } })).toBe(0);
  expect(await t.db.collection("tagValues").distinct("dimension", { projectId })).toHaveLength(3);
  const claim = await t.db.collection("retentionClaims").findOne({ _id: "tagValues" as never });
  expect(claim).not.toBeNull();
});
