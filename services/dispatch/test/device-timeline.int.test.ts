import { randomUUID } from "node:crypto";
import { publish, sendRequest } from "@herald/bus";
import {
  bucketOf,
  DeliverBatchV1,
  type DeviceId,
  type DeviceNotification,
  deliveryRequests,
  ExpandedV1,
  type NotificationId,
  newNotificationId,
  type ProjectId,
  type Recipient,
  SendOneV1,
} from "@herald/contracts";
import { eventually } from "@herald/testing";
import { afterAll, beforeAll, expect, test } from "vitest";
import { oneExpansion } from "../src/domain/expansions.ts";
import { newDocument, notificationCollection } from "../src/stores/notification-document.ts";
import { type DispatchTest, day, device, devices, nextNotificationId, startDispatchTest } from "./dispatch-fixture.ts";
import { handleResolveSends, type RegistryFixture } from "./registry-fixture.ts";

let dispatch: DispatchTest;
let answers: RegistryFixture;
beforeAll(async () => {
  dispatch = await startDispatchTest();
  answers = handleResolveSends(dispatch.bus);
});
afterAll(async () => {
  await answers.stop();
  await dispatch.stop();
});

/** Sorts devices by id, as in batches. */
const sorted = (some: readonly Recipient[]) => some.toSorted((one, other) => (one.id < other.id ? -1 : 1));

const read = (projectId: ProjectId, deviceId: DeviceId, after = "", perPage = 20) =>
  sendRequest(dispatch.bus, deliveryRequests.ofDevice, { projectId, deviceId, page: { after, perPage } });

/** Reads all pages. */
const walk = async (projectId: ProjectId, deviceId: DeviceId, perPage = 20) => {
  const pages: DeviceNotification[][] = [];
  for (let after: string | null = ""; after !== null; ) {
    const page: Awaited<ReturnType<typeof read>> = await read(projectId, deviceId, after, perPage);
    pages.push(page.data);
    after = page.next;
  }
  return { pages: pages.length, rows: pages.flat(), ids: pages.flat().map(({ notification }) => notification.id) };
};

/** Stores and pushes a small send. */
const sendSmall = async (projectId: ProjectId, some: readonly Recipient[], title = "Small") => {
  const target = `token:${randomUUID()}`;
  answers.registry.set(target, { devices: sorted(some) });
  const notificationId = nextNotificationId();
  const at = dispatch.now();
  const send = {
    projectId,
    notificationId,
    content: { title, targets: [target] },
    acceptedAt: at.toISOString(),
    expiresAt: new Date(at.getTime() + day).toISOString(),
  };
  await publish(dispatch.bus, SendOneV1, send, { id: randomUUID() });
  return notificationId;
};

const buckets = 1_024;

/** Makes a send that registry partitions into four pages of at most two batches. */
const sendLarge = async (projectId: ProjectId, unsorted: readonly Recipient[]) => {
  const some = sorted(unsorted);
  const notificationId = await dispatch.send(projectId);
  await dispatch.expansion(projectId, notificationId);
  const pages = Map.groupBy(some, ({ id }) => Math.floor(bucketOf(id) / buckets));
  let batches = 0;
  for (const [page, own] of pages) {
    const half = Math.ceil(own.length / 2);
    for (const [n, part] of [own.slice(0, half), own.slice(half)].entries()) {
      if (part.length === 0) continue;
      const batchId = `${notificationId}/${page}/${n}`;
      const batch = { batchId, projectId, notificationId, lane: "broadcast", platform: "ios", devices: part } as const;
      await eventually(() => publish(dispatch.bus, DeliverBatchV1, { ...batch, devices: [...part] }, { id: batchId }));
      batches++;
    }
  }
  const expanded = { n: 0, batches, devices: some.length, unmatched: [], pages: { buckets, batches: 2 } };
  await publish(dispatch.bus, ExpandedV1, { projectId, notificationId, ...expanded }, { id: `${notificationId}/end` });
  return notificationId;
};

test("has small and large sends, newest first, each with its result on the device", async () => {
  const projectId = await dispatch.project();
  const crowd = devices(24);
  const one = crowd[17];
  const absent = device();
  if (!one) throw new Error("no device");
  const sent: NotificationId[] = [];
  sent.push(await sendSmall(projectId, [one], "First"));
  sent.push(await sendLarge(projectId, crowd));
  await sendLarge(
    projectId,
    crowd.filter(({ id }) => id !== one.id),
  );
  sent.push(await sendSmall(projectId, [one, absent]));
  await sendSmall(projectId, [absent]);
  sent.push(await dispatch.send(projectId));
  // As from an older registry, which does not publish the pages.
  await dispatch.partition(projectId, sent.at(-1) ?? "ntf_", [crowd]);
  sent.push(await sendLarge(projectId, crowd));
  for (const id of sent) await dispatch.final(projectId, id);

  const newest = sent.toReversed();
  for (const perPage of [1, 2, 20]) expect((await walk(projectId, one.id, perPage)).ids).toEqual(newest);
  expect((await walk(projectId, absent.id)).ids).toHaveLength(2);
  for (const { id } of crowd.slice(0, 6)) expect((await walk(projectId, id)).ids).toHaveLength(4);
  const { rows } = await walk(projectId, one.id);
  expect(rows.at(-1)).toMatchObject({
    notification: { id: sent[0], title: "First", status: "completed", created_at: expect.any(String) },
    platform: "ios",
    status: "accepted",
    attempts: 1,
    provider_id: expect.any(String),
  });
  expect(await walk(await dispatch.project(), one.id)).toMatchObject({ rows: [] });
});

test("shows which deliveries failed and why, and which wait", async () => {
  const projectId = await dispatch.project();
  const [dead, slow] = [device("410"), device("500")];
  dispatch.simulators.script([
    { provider: "apns", tokenPrefix: "500", status: 500, times: 2 },
    { provider: "apns", tokenPrefix: "410", status: 410, reason: "Unregistered" },
  ]);
  const small = await sendSmall(projectId, [dead, slow]);
  const large = await sendLarge(projectId, [dead, slow, ...devices(5)]);
  await eventually(async () => {
    const { rows } = await walk(projectId, slow.id);
    expect(rows).toMatchObject([
      { notification: { id: large, status: "sending" }, status: "pending", attempts: 1 },
      { notification: { id: small, status: "sending" }, status: "pending", attempts: 1 },
    ]);
  });
  await eventually(async () =>
    expect((await walk(projectId, dead.id)).rows).toMatchObject([
      { notification: { id: large }, status: "failed", reason: "unregistered", provider_reason: "Unregistered" },
      { notification: { id: small }, status: "failed", reason: "unregistered", attempts: 1 },
    ]),
  );
  dispatch.pass(120_000);
  for (const id of [small, large]) await dispatch.final(projectId, id);
  expect((await walk(projectId, slow.id)).rows).toMatchObject([
    { notification: { status: "completed" }, status: "accepted", attempts: 2 },
    { notification: { status: "completed" }, status: "accepted", attempts: 2 },
  ]);
});

test("looks at a bounded number of large sends for a page, and goes on behind those that missed the device", async () => {
  const projectId = await dispatch.project();
  const one = device();
  const first = await sendSmall(projectId, [one]);
  await dispatch.final(projectId, first);
  const notifications = notificationCollection(dispatch.database.client.db(dispatch.database.name));
  const large = (from: number, count: number, pages: object) =>
    Array.from({ length: count }, (_, at) => {
      const acceptedAt = new Date(Date.now() + 1_000 * (from + at));
      const facts = { _id: newNotificationId(acceptedAt), projectId, acceptedAt, expiresAt: acceptedAt };
      const state = { ...facts, status: "sending", step: "delivering", nextAt: acceptedAt } as const;
      return {
        ...newDocument(state, { content: { title: "Other", targets: ["all"] } }, []),
        expansions: oneExpansion(acceptedAt),
        expanded: { batches: 3, devices: 3, unmatched: [], at: acceptedAt, ...pages },
      };
    });
  await notifications.insertMany(large(0, 250, { pages: { buckets, batches: 2 } }));
  expect(await walk(projectId, one.id)).toMatchObject({ pages: 3, ids: [first] });
  // From an older version: all of their batches must be searched, so a page searches fewer notifications.
  await notifications.insertMany(large(300, 10, {}));
  expect(await walk(projectId, one.id)).toMatchObject({ pages: 5, ids: [first] });
});

test("refuses an `after` that was not given out", async () => {
  const projectId = await dispatch.project();
  await expect(read(projectId, device().id, "ntf_1")).rejects.toMatchObject({ code: "validation-failed" });
});
