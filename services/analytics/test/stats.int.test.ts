import { publish, publishEvents, sendRequest } from "@herald/bus";
import {
  DeliveryAcceptedV1,
  DeliveryFailedV1,
  NotificationAcceptedV1,
  type NotificationId,
  newNotificationId,
  newProjectId,
  OpenGroupV1,
  type OutboxEvent,
  openRequests,
  ProjectDeletedV1,
  userKey,
} from "@herald/contracts";
import { eventually } from "@herald/testing";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { aggregateDeltas } from "../src/domain/aggregate.ts";
import { reportRowId } from "../src/domain/report.ts";
import { reportId } from "../src/domain/stats-delta.ts";
import { createAggregate } from "../src/jobs/aggregate-stats.ts";
import {
  type AnalyticsTest,
  accept,
  acceptedAt,
  fail,
  messageId as id,
  idsOf,
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

describe("statistics", () => {
  test("count each event of a shared message once, in whatever company it is published", async () => {
    const subjects = Array.from({ length: 150 }, (_, index) => ({ ...sample(), index }));
    const { projectId } = subjects[0] ?? sample();
    const factOf = ({ notificationId, index }: (typeof subjects)[number]): OutboxEvent => {
      const data = accept({ projectId, notificationId }, "2030-03-30T12:30:00.000Z", (index % 3) + 1);
      return {
        id: `${data.batch_id}/accepted`,
        event: "DeliveryAcceptedV1",
        subject: notificationId,
        at: acceptedAt,
        data,
      };
    };
    const facts = subjects.map(factOf);
    await publishEvents(t.bus, facts);
    await publishEvents(t.bus, facts.slice(100));
    await publishEvents(t.bus, facts.slice(0, 1));
    const wanted = { sent: 300, failed: 0, opened: 0 };
    await eventually(async () => expect(await t.totals(projectId)).toEqual(wanted), { timeoutMs: 30_000 });
    await t.settled();
    expect(await t.totals(projectId)).toEqual(wanted);
    const [one, two] = subjects as [(typeof subjects)[number], (typeof subjects)[number]];
    expect(await t.totals(projectId, { notificationId: one.notificationId })).toEqual({ ...wanted, sent: 1 });
    expect(await t.totals(projectId, { notificationId: two.notificationId })).toEqual({ ...wanted, sent: 2 });
  });

  test("contain a series, totals, failures by reason, and the opens of a notification", async () => {
    const one = sample();
    await publish(t.bus, DeliveryAcceptedV1, accept(one, "2030-03-30T12:59:59.999Z", 3), id());
    await publish(t.bus, DeliveryAcceptedV1, accept(one, "2030-03-30T13:00:00.000Z", 2, "web"), id());
    await publish(
      t.bus,
      DeliveryFailedV1,
      fail(one, "2030-03-30T13:10:00Z", ["unregistered", "internal", "internal"]),
      id(),
    );
    await publish(t.bus, OpenGroupV1, opensAt(one, ["2030-03-30T12:01:00Z"], "web"), id());
    // From a time before open tokens contained the platform.
    await publish(t.bus, OpenGroupV1, opensAt(one, ["2030-03-30T14:00:00Z"]), id());
    const wanted = { sent: 5, failed: 3, opened: 2 };
    await eventually(async () => expect(await t.totals(one.projectId)).toEqual(wanted));
    await t.aggregated();
    const { series, totals: all, from, to } = await t.stats(one.projectId, { notificationId: one.notificationId });
    expect([from, to, series.length]).toEqual(["2030-03-30T12:00:00.000Z", "2030-03-31T12:00:00.000Z", 24]);
    expect(series.slice(0, 3)).toMatchObject([
      { at: "2030-03-30T12:00:00.000Z", sent: 3, failed: 0, opened: 1, open_rate: 0.3333 },
      { at: "2030-03-30T13:00:00.000Z", sent: 2, failed: 3, opened: 0, open_rate: 0 },
      { at: "2030-03-30T14:00:00.000Z", sent: 0, failed: 0, opened: 1, open_rate: null },
    ]);
    expect(all).toMatchObject({ ...wanted, open_rate: 0.4, failures: { unregistered: 1, internal: 2 } });
    const { notification } = await t.stats(one.projectId, { notificationId: one.notificationId });
    expect(notification).toMatchObject({
      id: one.notificationId,
      first_opened_at: "2030-03-30T12:01:00.000Z",
      last_opened_at: "2030-03-30T14:00:00.000Z",
    });
    expect(Math.abs((notification?.time_to_open?.p50 ?? 0) - 60)).toBeLessThan(2);
    expect(Math.abs((notification?.time_to_open?.p99 ?? 0) - 7_200)).toBeLessThan(220);
    const web = { sent: 2, failed: 0, opened: 1, open_rate: 0.5, failures: {} };
    expect((await t.stats(one.projectId, { platform: "web" })).totals).toMatchObject(web);
    // A range in the middle has only its own hour. Another project sees nothing of it, even with the notification's id.
    const hour = { from: "2030-03-30T13:00:00.000Z", to: "2030-03-30T14:00:00.000Z" };
    expect(await t.totals(one.projectId, hour)).toEqual({ sent: 2, failed: 3, opened: 0 });
    const stranger = sample();
    const nothing = { sent: 0, failed: 0, opened: 0 };
    expect(await t.totals(stranger.projectId, { notificationId: one.notificationId })).toEqual(nothing);
    expect((await t.stats(stranger.projectId, { notificationId: one.notificationId })).notification).toEqual({
      id: one.notificationId,
    });
  });

  test("of days follow the time zone, also when the clocks change", async () => {
    const one = sample();
    // Berlin's 31 March 2030 lasts from 23:00 to 22:00 UTC.
    const times = ["2030-03-30T22:59:59Z", "2030-03-30T23:00:00Z", "2030-03-31T21:59:59Z", "2030-03-31T22:00:00Z"];
    await publish(t.bus, OpenGroupV1, opensAt(one, times), id());
    const request = { interval: "day", timeZone: "Europe/Berlin", to: "2030-04-01T00:00:00.000Z" } as const;
    await eventually(async () => expect((await t.totals(one.projectId, request)).opened).toBe(4));
    expect((await t.stats(one.projectId, request)).series.map(({ at, opened }) => [at, opened])).toEqual([
      ["2030-03-29T23:00:00.000Z", 1],
      ["2030-03-30T23:00:00.000Z", 2],
      ["2030-03-31T22:00:00.000Z", 1],
    ]);
  });

  test("of a topic are those of the notifications to it", async () => {
    const one = sample();
    const other = { ...one, notificationId: newNotificationId(acceptedAt) };
    const at = "2030-03-30T12:00:00Z";
    // The delivery arrives before the topic.
    await publish(t.bus, DeliveryAcceptedV1, accept(one, at, 3), id());
    await publish(t.bus, DeliveryAcceptedV1, accept(other, at, 4), id());
    await eventually(async () => expect((await t.totals(one.projectId)).sent).toBe(7));
    await publish(t.bus, NotificationAcceptedV1, { ...idsOf(one), at, topics: ["news", "sport"] }, id());
    await publish(t.bus, NotificationAcceptedV1, { ...idsOf(other), at }, id());
    await eventually(async () => expect((await t.totals(one.projectId, { topic: "news" })).sent).toBe(3));
    expect((await t.totals(one.projectId, { topic: "other" })).sent).toBe(0);
    expect((await t.totals(newProjectId(acceptedAt), { topic: "news" })).sent).toBe(0);
  });

  test("know the users and the time of a notification, also of one that has nothing else", async () => {
    const one = sample();
    const other = { ...one, notificationId: newNotificationId(acceptedAt) };
    const at = "2030-03-30T12:00:00Z";
    await publish(t.bus, NotificationAcceptedV1, { ...idsOf(one), at, users: ["u_1"] }, id());
    await publish(t.bus, NotificationAcceptedV1, { ...idsOf(other), at, send_at: "2030-03-30T13:00:00Z" }, id());
    const { notificationFacts } = t.stores();
    const ofUser = () =>
      notificationFacts.ofUser(one.projectId, userKey(one.projectId, "u_1"), new Date(0), new Date("2031-01-01"));
    await eventually(async () => expect(await ofUser()).toEqual([one.notificationId]));
    await eventually(async () =>
      expect(await notificationFacts.sendTimes([one.notificationId, other.notificationId])).toEqual(
        new Map([[other.notificationId, new Date("2030-03-30T13:00:00Z")]]),
      ),
    );
  });

  test("count each message once, even if it is repeated, late, out of order, or beside a malformed one", async () => {
    const one = sample();
    const accepted = accept(one, "2030-03-30T13:00:00Z", 5);
    const failed = fail(one, "2030-03-30T12:00:00Z", ["internal"]);
    const opened = opensAt(one, ["2030-03-30T12:30:00Z", "2030-03-30T12:40:00Z"]);
    const again = { ...opened, opens: opened.opens.map((open) => ({ ...open, openedAt: "2030-03-30T18:00:00Z" })) };
    const poison = { ...DeliveryAcceptedV1, schema: { parse: (data: unknown) => data } } as never;
    await publish(t.bus, OpenGroupV1, opened, id());
    await eventually(async () => expect((await t.totals(one.projectId)).opened).toBe(2));
    await publish(t.bus, poison as typeof DeliveryAcceptedV1, { project_id: one.projectId } as never, id());
    for (let round = 0; round < 3; round++) {
      await publish(t.bus, DeliveryFailedV1, failed, id());
      await publish(t.bus, OpenGroupV1, opened, id());
      await publish(t.bus, OpenGroupV1, again, id());
      await publish(t.bus, DeliveryAcceptedV1, accepted, id());
    }
    await t.settled();
    expect(await t.totals(one.projectId)).toEqual({ sent: 5, failed: 1, opened: 2 });
    expect((await t.stats(one.projectId)).series[6]).toMatchObject({ opened: 0 });
  });

  test("wait while the database is unavailable, and miss nothing", async () => {
    const one = sample();
    await t.proxy.cut();
    await publish(t.bus, DeliveryAcceptedV1, accept(one, "2030-03-30T12:00:00Z", 5), id());
    await publish(t.bus, OpenGroupV1, opensAt(one, ["2030-03-30T12:30:00Z"]), id());
    await expect(t.stats(one.projectId)).rejects.toMatchObject({ code: "database-unavailable" });
    await t.proxy.heal();
    await eventually(async () => expect(await t.totals(one.projectId)).toEqual({ sent: 5, failed: 0, opened: 1 }), {
      timeoutMs: 30_000,
    });
  });

  test("are deleted with their project, and no others", async () => {
    const [gone, stays] = [sample(), sample()];
    for (const one of [gone, stays])
      await publish(t.bus, DeliveryAcceptedV1, accept(one, "2030-03-30T12:00:00Z", 2), id());
    for (const one of [gone, stays]) await eventually(async () => expect((await t.totals(one.projectId)).sent).toBe(2));
    await publish(t.bus, ProjectDeletedV1, { project_id: gone.projectId, at: "2030-03-31T00:00:00Z" }, id());
    await eventually(async () => expect((await t.totals(gone.projectId)).sent).toBe(0));
    expect((await t.totals(stays.projectId)).sent).toBe(2);
  });
});

describe("a process that is killed", () => {
  test("between storing opens and counting them is compensated by the redelivery", async () => {
    const one = sample();
    const report = opensAt(one, ["2030-03-30T12:30:00Z", "2030-03-30T12:31:00Z"]);
    const [first] = report.opens;
    if (first === undefined) throw new Error("no open");
    // Half of the insert is stored, and no delta.
    const row = {
      ...first,
      projectId: one.projectId,
      at: new Date(first.openedAt),
      report: reportId(one.projectId, report.opens),
    };
    await t.db.collection<{ _id: string }>("opens").insertOne({ ...row, _id: reportRowId(first) } as never);
    await publish(t.bus, OpenGroupV1, report, id());
    await eventually(async () => expect(await t.totals(one.projectId)).toEqual({ sent: 0, failed: 0, opened: 2 }));
  });

  /** Where the process dies: after each step of a run. */
  const places = ["begun", "half of the rollups", "all rollups", "marked"] as const;

  test("during a run is replaced by another, wherever it dies", async () => {
    await t.settled();
    await t.app.stop();
    const subjects: Subject[] = [];
    try {
      for (const place of places) {
        const { deltas, rollups, tagValues } = t.stores();
        const one = sample();
        subjects.push(one);
        const at = new Date("2030-03-30T12:00:00Z");
        const part = { notificationId: one.notificationId, slot: at, adds: [["sent.ios", 7]] as const };
        for (const n of [1, 2, 3]) {
          const _id = `${one.notificationId}/${n}`;
          await deltas.put([{ _id, projectId: one.projectId, kind: "deliveries", increments: [part] }]);
        }
        const last = await deltas.lastRun();
        const ids = (await deltas.findNotAggregated(10)).map(({ _id }) => _id);
        expect(ids).toHaveLength(3);
        const began = { deltas: ids, by: "the dead", at: new Date(0) };
        expect(await deltas.beginRun(last, began)).toBe(true);
        const changes = aggregateDeltas(await deltas.get(ids), (_, tag) => tag);
        if (place === "half of the rollups") await rollups.add(last.number + 1, changes.slice(0, 1));
        if (place === "all rollups" || place === "marked") await rollups.add(last.number + 1, changes);
        if (place === "marked") await deltas.markAggregated(ids);
        // A process that read the head before it moved cannot begin a run.
        expect(await deltas.beginRun(last, began)).toBe(false);
        const aggregate = createAggregate({ deltas, rollups, tagValues });
        expect((await aggregate()).documents).toBe(3);
        expect((await aggregate()).documents).toBe(0);
        // The process that seemed dead continues with its next write.
        await rollups.add(last.number + 1, changes);
      }
    } finally {
      await t.restart();
    }
    for (const [index, { projectId, notificationId }] of subjects.entries()) {
      expect((await t.totals(projectId)).sent, places[index]).toBe(21);
      expect((await t.totals(projectId, { notificationId })).sent, places[index]).toBe(21);
    }
  });
});

test("opens of one notification beyond the thousand that are counted one by one count once each", async () => {
  const one = sample();
  const reports = Array.from({ length: 60 }, (_, index) =>
    opensAt(one, Array<string>(20).fill(new Date(acceptedAt.getTime() + index * 600_000).toISOString())),
  );
  await Promise.all(reports.map((report) => publish(t.bus, OpenGroupV1, report, id())));
  const wide = { to: "2030-04-01T00:00:00.000Z", notificationId: one.notificationId } as const;
  const of = { projectId: one.projectId, notificationIds: [one.notificationId as NotificationId] };
  await eventually(async () => expect((await t.totals(one.projectId, wide)).opened).toBe(1_200), {
    timeoutMs: 30_000,
  });
  await t.aggregated();
  expect((await sendRequest(t.bus, openRequests.count, of)).counts).toEqual({ [one.notificationId]: 1_200 });
});

test("the opens of one notification are counted exactly, those of a page by the rollups", async () => {
  const [one, other] = [sample(), sample()];
  const opened = (notificationIds: NotificationId[]) =>
    sendRequest(t.bus, openRequests.count, { projectId: one.projectId, notificationIds });
  const ids = [one.notificationId, other.notificationId] as NotificationId[];
  await publish(t.bus, OpenGroupV1, opensAt(one, [acceptedAt.toISOString()]), id());
  await eventually(async () => expect((await opened(ids.slice(0, 1))).counts).toEqual({ [one.notificationId]: 1 }));
  const ofBoth = { [one.notificationId]: 1, [other.notificationId]: 0 };
  await eventually(async () => expect((await opened(ids)).counts).toEqual(ofBoth), { timeoutMs: 30_000 });
}, 60_000);
