import { type GroupedSend, newDeviceId, newNotificationIds, newProjectId, type Recipient } from "@herald/contracts";
import { createLogger } from "@herald/kit";
import { type FreshDatabase, freshDatabase } from "@herald/testing";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type BegunSendsDeps, createBegunSends } from "../src/delivery/begun-sends.ts";
import { rootBatchId } from "../src/domain/batch.ts";
import { settleRow } from "../src/domain/settle-row.ts";
import { createDeliveryStore } from "../src/stores/delivery-store.ts";
import { createNotificationStore } from "../src/stores/notification-store.ts";
import { createSmallSendStore } from "../src/stores/small-send-store.ts";
import { createDispatchOutbox } from "../src/stores/stores.ts";
import { endOne, insertOne } from "./small-sends-fixture.ts";

let database: FreshDatabase;
beforeAll(async () => {
  database = await freshDatabase();
});
afterAll(() => database.drop());

test("an end that a killed process wrote late, after its message was redelivered, is published", async () => {
  const db = database.client.db(database.name);
  const [sends, deliveries] = [createSmallSendStore(db), createDeliveryStore(db)];
  for (const { ensureIndexes } of [createNotificationStore(db), deliveries]) await ensureIndexes();
  const now = new Date("2030-01-01T12:00:00.000Z");
  const expiresAt = new Date(now.getTime() + 60_000);
  const claim = { at: 1, sequence: 7 };
  const projectId = newProjectId(now);
  const [notificationId = "ntf_" as const] = newNotificationIds(now, 1);
  const device: Recipient = { id: newDeviceId(now), token: "a".repeat(64), tokenAt: 0 };
  const send: GroupedSend = {
    projectId,
    notificationId,
    content: { title: "Hello", targets: [device.id] },
    acceptedAt: now.toISOString(),
    expiresAt: expiresAt.toISOString(),
  };
  const batches = [{ platform: "ios" as const, devices: [device] }];
  const batchId = rootBatchId(notificationId, 0);
  const partitioned = batches.map((batch) => ({
    ...batch,
    batchId,
    projectId,
    notificationId,
    lane: "direct" as const,
  }));
  const stored = await insertOne(sends, { send, batches: partitioned, unmatched: [] }, claim, now);

  /** The update that the process had sent to the database when it died. */
  const endLate = () =>
    endOne(
      sends,
      stored.document,
      stored.runs.map((run) => ({
        run,
        settlement: settleRow({
          devices: run.devices,
          outcomes: [{ kind: "accepted" }],
          ...{ startedAt: now, now, expiresAt, cancelled: false, keepDevices: false, random: 0 },
        }),
      })),
      now,
    );
  const published: string[] = [];
  const unused = {} as never;
  const deps: BegunSendsDeps = {
    sends: {
      ...sends,
      moveToDeliveries: async (project, id) => {
        await endLate();
        await sends.moveToDeliveries(project, id);
      },
    },
    deliveries,
    finisher: { check: async () => {} }, // the send has ended, and no outbox contains its events
    publish: async (events) => void published.push(...events.map(({ id }) => id)),
    outbox: createDispatchOutbox(db, {
      publish: async () => {},
      log: createLogger({ service: "test", level: "silent" }),
    }),
    now: () => now,
    ...{ pipeline: unused, checkWaiting: unused, release: unused, sendAsLarge: unused },
  };
  const { signal } = new AbortController();
  await createBegunSends(deps).resume(send, { document: stored.document, events: [] }, { claim, signal });
  expect(new Set(published)).toEqual(
    new Set([`${notificationId}/accepted`, `${batchId}/accepted`, `${notificationId}/completed`]),
  );
});
