import { type NotificationId, newDeviceId, newNotificationId, newProjectId } from "@herald/contracts";
import { describe, expect, test } from "vitest";
import { aggregateDeltas } from "./aggregate.ts";
import { intervalsOf, partsOfRange } from "./intervals.ts";
import { statsView, sumHours } from "./stats.ts";
import { deliveryDelta, reportId, reportIncrements, timeBucket, timesToOpen } from "./stats-delta.ts";
import { fieldOfValue, valueOfField } from "./tags.ts";

const at = (text: string) => new Date(text);
const projectId = newProjectId(at("2030-01-01T00:00:00Z"));
const notificationId = newNotificationId(at("2030-01-01T00:00:00Z"));
const device = () => newDeviceId(at("2030-01-01T00:00:00Z"));

test.each([
  ["whole days", "01T00:00", "04T00:00", ["day 01T00:00 04T00:00"]],
  [
    "hours before and after days",
    "01T22:00",
    "04T03:00",
    ["hour 01T22:00 02T00:00", "day 02T00:00 04T00:00", "hour 04T00:00 04T03:00"],
  ],
  ["hours of two days", "01T22:00", "02T02:00", ["hour 01T22:00 02T00:00", "hour 02T00:00 02T02:00"]],
  [
    "parts of hours",
    "01T21:30",
    "03T00:15",
    ["quarter 01T21:30 01T22:00", "hour 01T22:00 02T00:00", "day 02T00:00 03T00:00", "quarter 03T00:00 03T00:15"],
  ],
  ["parts of two hours", "01T10:45", "01T11:15", ["quarter 01T10:45 01T11:00", "quarter 01T11:00 01T11:15"]],
  ["a part of one hour", "01T10:15", "01T10:45", ["quarter 01T10:15 01T10:45"]],
])("a range of %s is split into them", (_, from, to, parts) => {
  const text = (time: Date) => time.toISOString().slice(8, 16);
  const range = { from: at(`2030-01-${from}Z`), to: at(`2030-01-${to}Z`) };
  expect(partsOfRange(range).map((part) => `${part.unit} ${text(part.from)} ${text(part.to)}`)).toEqual(parts);
});

test.each(["spring", "v1.2", "50% $off.", "__proto__", "a\0b", "größe 🎉", "%2e"])(
  "the value %j is a field, and back",
  (value) => {
    const field = fieldOfValue(value);
    expect(field).not.toMatch(/[.$\0]|^__/);
    expect(valueOfField(field)).toBe(value);
  },
);

describe("intervals", () => {
  const spans = (from: string, to: string, interval: "hour" | "day", zone: string) =>
    intervalsOf(at(from), at(to), interval, zone).map(({ at, end }) => [
      at.toISOString().slice(0, 16),
      (end.getTime() - at.getTime()) / 3_600_000,
    ]);

  test.each([
    ["a range inside one hour is that hour", "2030-01-01T10:20:00Z", "2030-01-01T10:40:00Z", "hour", "UTC"],
    ["borders that are whole add none", "2030-01-01T10:00:00Z", "2030-01-01T11:00:00Z", "hour", "UTC"],
  ] as const)("%s", (_, from, to, interval, zone) => {
    expect(spans(from, to, interval, zone)).toEqual([["2030-01-01T10:00", 1]]);
  });

  test.each([
    ["the clocks go forward", "2030-03-30T23:00:00Z", 23],
    ["the clocks go back", "2030-10-26T22:00:00Z", 25],
    ["nothing happens", "2030-06-01T22:00:00Z", 24],
  ])("a day in Berlin when %s", (_, start, hours) => {
    expect(spans(start, new Date(at(start).getTime() + 1).toISOString(), "day", "Europe/Berlin")).toEqual([
      [start.slice(0, 16), hours],
    ]);
  });

  test("an hour that the clocks repeat is two intervals, and none is missing", () => {
    expect(spans("2030-10-26T23:30:00Z", "2030-10-27T02:30:00Z", "hour", "Europe/Berlin")).toEqual([
      ["2030-10-26T23:00", 1],
      ["2030-10-27T00:00", 1],
      ["2030-10-27T01:00", 1],
      ["2030-10-27T02:00", 1],
    ]);
  });

  test.each([
    ["Asia/Kathmandu", "2030-01-01T18:15"],
    ["Asia/Kolkata", "2030-01-01T18:30"],
    ["America/St_Johns", "2030-01-02T03:30"],
    ["Pacific/Chatham", "2030-01-02T10:15"],
  ])("a day in %s begins at a quarter", (zone, start) => {
    expect(spans(`${start}:00Z`, `${start}:01Z`, "day", zone)).toEqual([[start, 24]]);
  });
});

describe("the time to open", () => {
  test.each([-5, 0, 99, 100, 1_000, 60_000, 86_400_000, 2_592_000_000])("of %d ms is 3 %% off at most", (ms) => {
    const p50 = timesToOpen({ [timeBucket(ms)]: 1 })?.p50 ?? Number.NaN;
    expect(Math.abs(p50 * 1000 - Math.max(ms, 100))).toBeLessThanOrEqual(Math.max(ms, 100) * 0.03);
  });

  test("has percentiles by the nearest rank, and none without opens", () => {
    expect(timesToOpen({})).toBeUndefined();
    const histogram: Record<string, number> = {};
    for (let second = 1; second <= 100; second++) {
      const bucket = timeBucket(second * 1000);
      histogram[bucket] = (histogram[bucket] ?? 0) + 1;
    }
    const { p50, p75, p90, p99 } = timesToOpen(histogram) ?? { p50: 0, p75: 0, p90: 0, p99: 0 };
    for (const [found, wanted] of [
      [p50, 50],
      [p75, 75],
      [p90, 90],
      [p99, 99],
    ] as const)
      expect(Math.abs(found - wanted) / wanted).toBeLessThan(0.05);
  });
});

describe("deltas", () => {
  const facts = {
    project_id: projectId,
    notification_id: notificationId,
    batch_id: `${notificationId}/0/0`,
    platform: "ios" as const,
  };

  test("count failures by reason, but not expired or cancelled ones; a reason cannot be a path", () => {
    const failures = [
      { device_id: device(), status: "failed" as const, reason: "unregistered" },
      { device_id: device(), status: "failed" as const, reason: "unregistered" },
      { device_id: device(), status: "failed" as const, reason: "$a.b" },
      { device_id: device(), status: "expired" as const, reason: "expired" },
    ];
    const data = { ...facts, at: "2030-01-01T10:29:59.999Z", failures, unregistered: [] };
    const { _id, increments } = deliveryDelta(data);
    expect(_id).toBe(`${notificationId}/0/0/failed`);
    expect(increments).toEqual([
      {
        notificationId,
        slot: at("2030-01-01T10:15:00Z"),
        adds: [
          ["failed.ios.unregistered", 2],
          ["failed.ios.other", 1],
        ],
      },
    ]);
  });

  test("of a report have an id derived from its content", () => {
    const opens = [{ notificationId, deviceId: device(), openedAt: "2030-01-01T00:00:00.000Z" }];
    expect(reportId(projectId, opens)).toBe(reportId(projectId, structuredClone(opens)));
    expect(reportId(newProjectId(new Date()), opens)).not.toBe(reportId(projectId, opens));
  });

  test("aggregate into hours and a total without loss", () => {
    const open = (openedAt: string) => ({ projectId, notificationId, deviceId: device(), at: at(openedAt) });
    const opens = ["2030-01-01T10:14:59.999Z", "2030-01-01T10:15:00Z", "2030-01-01T11:00:00Z"].map(open);
    const changes = aggregateDeltas(
      [
        deliveryDelta({ ...facts, at: "2030-01-01T10:00:00Z", devices: [device(), device()] }),
        deliveryDelta({ ...facts, platform: "web", at: "2030-01-01T10:00:00Z", devices: [device()] }),
        { projectId, increments: reportIncrements(opens, new Map()) },
      ],
      (_, tag) => tag,
    );
    expect(changes).toHaveLength(5);
    const project = changes.filter(({ scope }) => scope === "project");
    expect(project.map(({ hour, adds }) => [hour?.toISOString(), Object.fromEntries(adds)])).toEqual([
      [
        "2030-01-01T10:00:00.000Z",
        { "quarters.0.sent.ios": 2, "quarters.0.sent.web": 1, "quarters.0.opened": 1, "quarters.15.opened": 1 },
      ],
      ["2030-01-01T11:00:00.000Z", { "quarters.0.opened": 1 }],
    ]);
    const total = changes.find(({ scope }) => scope === `total/${notificationId}`);
    expect(total).toMatchObject({ first: opens[0]?.at, last: opens[2]?.at });
    expect(total?.adds.get("opened")).toBe(3);
  });

  test("of a scheduled notification measure from `send_at`", () => {
    const openedAt = at("2030-01-02T00:01:00Z");
    const increments = reportIncrements(
      [{ projectId, notificationId, deviceId: device(), at: openedAt }],
      new Map<NotificationId, Date>([[notificationId, at("2030-01-02T00:00:00Z")]]),
    );
    expect(increments[0]?.opens?.times).toEqual([[timeBucket(60_000), 1]]);
  });
});

test("the view of a platform excludes opens without a platform", () => {
  const request = {
    from: "2030-01-01T10:00:00.000Z",
    to: "2030-01-01T11:00:00.000Z",
    interval: "hour",
    timeZone: "UTC",
  } as const;
  const intervals = intervalsOf(at(request.from), at(request.to), "hour", "UTC");
  const quarters = {
    "45": { sent: { ios: 4, web: 1 }, failed: { web: { internal: 2 } }, opened: 3, openedOn: { ios: 1, web: 1 } },
  };
  const view = (platform?: "web") => {
    const hours = sumHours(intervals, platform);
    hours.add({ hour: at("2030-01-01T10:00:00Z"), quarters });
    hours.add({ hour: at("2030-01-01T12:00:00Z"), quarters });
    return statsView({ ...request, ...(platform ? { platform } : {}) }, intervals, hours, {}).totals;
  };
  expect(view()).toMatchObject({ sent: 5, failed: 2, opened: 3, open_rate: 0.6, failures: { internal: 2 } });
  expect(view("web")).toMatchObject({ sent: 1, failed: 2, opened: 1, open_rate: 1, failures: { internal: 2 } });
});

test.each([
  [{ kind: "news" }, ["kind/news"]],
  [{ labels: { campaign: "spring" } }, ["label/campaign/spring"]],
  [{ push_type: "voip" as const }, ["push_type/voip"]],
  [{ labels: {} }, undefined],
  [{}, undefined],
])("a delivery with %j has the tags %j", (fields, tags) => {
  const facts = { project_id: projectId, notification_id: notificationId, batch_id: "b", platform: "ios" as const };
  const delta = deliveryDelta({ ...facts, ...fields, at: "2030-01-01T10:00:00Z", devices: [device()] });
  expect(delta.increments[0]?.tags).toEqual(tags);
});

test("skipped devices count beside those that failed, by reason and platform", () => {
  const then = at("2030-01-01T00:00:00Z");
  const data = {
    ...{ project_id: projectId, notification_id: notificationId, at: then.toISOString() },
    ...{ batch_id: "b", platform: "ios" as const, unregistered: [] },
    failures: ["muted", "muted", "frequency-cap"].map((reason) => ({
      ...{ device_id: device(), status: "skipped" as const, reason },
    })),
  };
  expect(deliveryDelta(data).increments[0]?.adds).toEqual([
    ["skipped.ios.muted", 2],
    ["skipped.ios.frequency-cap", 1],
  ]);
  const hours = sumHours([{ at: then, end: at("2030-01-01T01:00:00Z") }], undefined);
  hours.add({ hour: then, quarters: { 0: { sent: { ios: 1 }, skipped: { ios: { muted: 2 }, web: { muted: 1 } } } } });
  expect(hours.total).toMatchObject({ sent: 1, failures: {}, skips: { muted: 3 } });
});
