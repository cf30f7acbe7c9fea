import { publish, sendRequest } from "@herald/bus";
import {
  type DataOf,
  DeliveryAcceptedV1,
  NotificationDismissedV1,
  NotificationOpenedV1,
  NotificationReceivedV1,
  OpenGroupV1,
  openRequests,
  ReceiptGroupV1,
} from "@herald/contracts";
import { eventually, readPublished } from "@herald/testing";
import { afterAll, beforeAll, expect, test } from "vitest";
import { reportRowId } from "../src/domain/report.ts";
import { reportId } from "../src/domain/stats-delta.ts";
import { rebuildStatistics } from "../src/rebuild/rebuild-statistics.ts";
import { type AnalyticsTest, accept, opensAt, sample, startAnalyticsTest } from "./analytics-fixture.ts";

let t: AnalyticsTest;
beforeAll(async () => {
  t = await startAnalyticsTest();
});
afterAll(() => t.stop());

type Group = DataOf<typeof ReceiptGroupV1>;
let messages = 0;
const id = () => ({ id: `m${messages++}` });
const at = "2030-03-30T12:07:00.000Z";

/** A received report of each of some devices, and a dismissal of the first. */
const group = (one = sample(), devices = 3): Group & { readonly one: ReturnType<typeof sample> } => {
  const { opens } = opensAt(one, Array(devices).fill(at), "android");
  const receipts = opens.map(({ notificationId, deviceId }) => {
    return { notificationId, deviceId, platform: "android" as const, kind: "received" as const, at };
  });
  const [first] = receipts;
  if (first === undefined) throw new Error("no device");
  return { one, projectId: one.projectId, receipts: [...receipts, { ...first, kind: "dismissed" }] };
};
const report = ({ projectId, receipts }: Group) => publish(t.bus, ReceiptGroupV1, { projectId, receipts }, id());

const counts = async ({ projectId, notificationId }: ReturnType<typeof sample>) =>
  (await sendRequest(t.bus, openRequests.count, { projectId, notificationIds: [notificationId] })).reports?.[
    notificationId
  ];

const published = async (notificationId: string, { filter }: { readonly filter: string }) => {
  const found = await readPublished(t.broker, filter);
  return found
    .map(({ headers, body }) => ({ id: headers["ce-id"], data: JSON.parse(body) }))
    .filter(({ data }) => data.notification_id === notificationId);
};

test("receipts and dismissals are stored, counted and published once each, however often they are reported", async () => {
  const sent = group();
  const { one, receipts } = sent;
  const [first] = receipts;
  if (first === undefined) throw new Error("no receipt");
  t.users.set(first.deviceId, "u-1");
  t.tags.set(one.notificationId, ["kind/order"]);
  await report(sent);
  await eventually(async () => expect(await counts(one)).toEqual({ received: 3, dismissed: 1 }));
  const received = await eventually(async () => {
    const found = await published(one.notificationId, NotificationReceivedV1);
    expect(found).toHaveLength(1);
    return found[0];
  });
  expect(received?.data).toMatchObject({ platform: "android", kind: "order", at });
  expect(received?.data.devices).toHaveLength(3);
  expect(received?.data.users.filter(Boolean)).toEqual(["u-1"]);
  await eventually(async () => expect(await published(one.notificationId, NotificationDismissedV1)).toHaveLength(1));

  // The same message again, and the same devices in another one.
  await report(sent);
  await report({ ...sent, receipts: sent.receipts.map((receipt) => ({ ...receipt, at: "2030-03-30T18:00:00.000Z" })) });
  await report(group(one, 1));
  await eventually(async () => expect(await counts(one)).toEqual({ received: 4, dismissed: 2 }));
  await t.aggregated();
  const { series, totals } = await t.stats(one.projectId, { platform: "android" });
  expect(totals).toMatchObject({ received: 4, dismissed: 2, opened: 0 });
  expect(series[0]).toMatchObject({ received: 4, dismissed: 2 });
  expect((await t.stats(one.projectId, { platform: "ios" })).totals).toMatchObject({ received: 0, dismissed: 0 });
  await eventually(async () =>
    expect((await t.stats(one.projectId, { by: "kind" })).groups).toMatchObject([{ value: "order", received: 4 }]),
  );
  const asked = { projectId: one.projectId, notificationId: one.notificationId, deviceIds: [first.deviceId] };
  expect(await sendRequest(t.bus, openRequests.ofDevices, asked)).toMatchObject({
    receivedAt: { [first.deviceId]: at },
    dismissedAt: { [first.deviceId]: at },
    openedAt: {},
  });
  const ids = (await published(one.notificationId, NotificationReceivedV1)).map((event) => event.id);
  expect(new Set(ids).size).toBe(2);
});

test("a process that died after storing them: the redelivery counts and publishes them under the same id", async () => {
  const sent = group();
  const { one, projectId, receipts } = sent;
  const rows = receipts.map((receipt) => ({
    ...receipt,
    at: new Date(receipt.at),
    projectId,
    report: reportId(projectId, receipts),
    _id: reportRowId(receipt),
  }));
  await t.db.collection<(typeof rows)[number]>("receipts").insertMany(rows.slice(0, 2));
  await report(sent);
  await eventually(async () => expect(await counts(one)).toEqual({ received: 3, dismissed: 1 }));
  await eventually(async () =>
    expect((await published(one.notificationId, NotificationReceivedV1))[0]?.data.devices).toHaveLength(3),
  );
});

test("the database goes away and comes back: they wait in the stream", async () => {
  const sent = group();
  await t.proxy.cut();
  await report(sent);
  // The stream tells its consumers of a message after it has acked it.
  await eventually(async () => expect(await t.hands.left("PUSH_RECEIPTS", "analytics-receipt-groups")).toBe(1));
  await t.proxy.heal();
  await eventually(async () => expect(await counts(sent.one)).toEqual({ received: 3, dismissed: 1 }), {
    timeoutMs: 30_000,
  });
});

test("the button of an open counts only if its notification has it", async () => {
  const one = sample();
  const { opens } = opensAt(one, [at, at, at], "ios");
  const pressed = opens.map((open, index) => ({ ...open, button: ["track", "track", "x".repeat(32)][index] ?? "" }));
  t.buttons.set(one.notificationId, ["track", "later"]);
  await publish(t.bus, OpenGroupV1, { projectId: one.projectId, opens: pressed }, id());
  await eventually(async () => expect(await counts(one)).toMatchObject({ buttons: { track: 2 } }));
  const deviceIds = opens.map(({ deviceId }) => deviceId);
  const { projectId, notificationId } = one;
  await eventually(async () => {
    const { buttons, openedAt } = await sendRequest(t.bus, openRequests.ofDevices, {
      projectId,
      notificationId,
      deviceIds,
    });
    expect(Object.values(buttons ?? {})).toEqual(["track", "track"]);
    expect(Object.keys(openedAt)).toHaveLength(3);
  });
  await eventually(async () => {
    const events = await published(notificationId, NotificationOpenedV1);
    expect(events.map(({ data }) => data.button).toSorted()).toEqual(["track", "track", undefined]);
  });
});

test("a rebuild gives the same figures", async () => {
  const sent = group();
  const { one } = sent;
  t.buttons.set(one.notificationId, ["track"]);
  const accepted = { ...accept(one, "2030-03-30T12:00:00Z", 5), asked: 4 };
  await publish(t.bus, DeliveryAcceptedV1, accepted, id());
  await report(sent);
  const { opens } = opensAt(one, [at], "ios");
  const withButton = opens.map((open) => ({ ...open, button: "track" }));
  await publish(t.bus, OpenGroupV1, { projectId: one.projectId, opens: withButton }, id());
  const wanted = { sent: 5, receipts_asked: 4, received: 3, dismissed: 1, opened: 1 };
  const check = async () => {
    await eventually(async () => expect((await t.stats(one.projectId)).totals).toMatchObject(wanted));
    await eventually(async () =>
      expect(await counts(one)).toEqual({ received: 3, dismissed: 1, buttons: { track: 1 } }),
    );
  };
  await check();
  await t.settled();
  await t.app.stop();
  await rebuildStatistics(t.db, t.stores(), () => undefined);
  await t.restart();
  await check();
});
