import { type GroupedSend, newDeviceId, newNotificationIds, newProjectId, type Recipient } from "@herald/contracts";
import { createLogger } from "@herald/kit";
import { type FreshDatabase, freshDatabase } from "@herald/testing";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type BegunSendsDeps, createBegunSends } from "../src/delivery/begun-sends.ts";
import { createRecoverLostWork } from "../src/delivery/recover-lost-work.ts";
import { rootBatchId } from "../src/domain/batch.ts";
import { settleRow } from "../src/domain/settle-row.ts";
import { deliveryCollection } from "../src/stores/delivery-document.ts";
import { createDeliveryStore } from "../src/stores/delivery-store.ts";
import { createLedger } from "../src/stores/ledger.ts";
import { notificationCollection } from "../src/stores/notification-document.ts";
import { createNotificationStore } from "../src/stores/notification-store.ts";
import { createSmallSendStore } from "../src/stores/small-send-store.ts";
import { createDispatchOutbox } from "../src/stores/stores.ts";
import { endOne, insertOne } from "./small-sends-fixture.ts";

let database: FreshDatabase;
beforeAll(async () => {
  database = await freshDatabase();
  const db = database.client.db(database.name);
  for (const { ensureIndexes } of [createNotificationStore(db), createDeliveryStore(db)]) await ensureIndexes();
});
afterAll(() => database.drop());

const now = new Date("2030-01-01T12:00:00.000Z");
const expiresAt = new Date(now.getTime() + 60_000);
/** The message for which a send was begun, and another one. */
const [claim, otherClaim] = [
  { at: 1, sequence: 7 },
  { at: 2, sequence: 8 },
];

/** A send that a killed process has stored, and what continues it. `moving`: runs before its rows move to the ledger. */
const beginSend = async (moving: (endLate: () => Promise<unknown>) => Promise<unknown> = async () => {}) => {
  const db = database.client.db(database.name);
  const [sends, deliveries] = [createSmallSendStore(db), createDeliveryStore(db)];
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
  const batchId = rootBatchId(notificationId, 0);
  const facts = { batchId, projectId, notificationId, lane: "direct", platform: "ios" } as const;
  const stored = await insertOne(
    sends,
    { send, batches: [{ ...facts, devices: [device] }], unmatched: [] },
    claim,
    now,
  );

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
  const large: string[] = [];
  const due: string[] = [];
  const unused = {} as never;
  const shared = {
    sends: {
      ...sends,
      moveToDeliveries: async (...[project, id]: Parameters<typeof sends.moveToDeliveries>) => {
        await moving(endLate);
        await sends.moveToDeliveries(project, id);
      },
    },
    deliveries,
    publish: async (events: readonly { readonly id: string }[]) => void published.push(...events.map(({ id }) => id)),
    now: () => new Date(now.getTime() + 1_000),
  };
  const { release } = createRecoverLostWork({
    ...shared,
    ledger: createLedger(db),
    dueMessages: { schedule: unused, publish: async ({ _id }: { _id: string }) => void due.push(_id) },
    ...{
      bus: unused,
      expandQueued: unused,
      expansionSteps: unused,
      log: unused,
      notifications: unused,
      pipeline: unused,
    },
  });
  const deps: BegunSendsDeps = {
    ...shared,
    finisher: { check: async () => {} }, // the send has ended, and no outbox contains its events
    outbox: createDispatchOutbox(db, {
      publish: async () => {},
      log: createLogger({ service: "test", level: "silent" }),
    }),
    release,
    sendAsLarge: async ({ notificationId: id }) => void large.push(id),
    ...{ pipeline: unused, checkWaiting: unused },
  };
  const begun = createBegunSends(deps);
  const { signal } = new AbortController();
  return {
    send,
    batchId,
    endLate,
    published,
    large,
    due,
    resume: async () => begun.resume(send, { document: stored.document, events: [] }, { claim, signal }),
    abandon: async () => expect(await begun.abandon([send], { claim, signal })).toEqual([]),
    continueApart: async (for_ = claim) => expect(await begun.continueApart([send], for_)).toEqual([]),
    moveToDeliveries: () => sends.moveToDeliveries(projectId, notificationId),
    row: () => deliveryCollection(db).findOne({ _id: batchId }),
    change: (set: object) => notificationCollection(db).updateOne({ _id: notificationId }, { $set: set }),
    changeRow: (set: object) => deliveryCollection(db).updateOne({ _id: batchId }, { $set: set }),
  };
};

test.each(["resume", "continueApart", "abandon"] as const)(
  "an end that a killed process wrote late, after its message was redelivered, is published (%s)",
  async (way) => {
    const one = await beginSend((endLate) => endLate());
    await one[way]();
    const { notificationId } = one.send;
    expect(new Set(one.published)).toEqual(
      new Set([`${notificationId}/accepted`, `${one.batchId}/accepted`, `${notificationId}/completed`]),
    );
  },
);

describe("a send that continues apart", () => {
  test("has a message for what was started and not settled, and its acceptance is published", async () => {
    const one = await beginSend();
    await one.continueApart();
    expect(one.due).toEqual([one.batchId]);
    expect(await one.row()).toMatchObject({ state: "waiting", devices: [{ repeat: true }] });
    expect(one.published).toEqual([`${one.send.notificationId}/accepted`]);
  });

  test("is published again if it has ended, and becomes a large one if its expansion was lost", async () => {
    const ended = await beginSend();
    await ended.endLate();
    await ended.continueApart();
    expect([ended.due, ended.large, ended.published.length]).toEqual([[], [], 3]);
    const lost = await beginSend();
    await lost.change({ "expanded.lost": true });
    await lost.continueApart();
    expect([lost.due, lost.large]).toEqual([[], [lost.send.notificationId]]);
  });

  test("is left to the message that began it, and to the messages of a large send", async () => {
    const one = await beginSend();
    await one.continueApart(otherClaim);
    expect([one.due, one.published, await one.row()]).toEqual([[], [], null]);
    expect(await one.endLate()).toMatchObject({ state: { status: "completed" } });

    const large = await beginSend();
    await large.moveToDeliveries();
    await large.changeRow({ claim: otherClaim });
    await large.continueApart();
    expect([large.due, await large.row()]).toMatchObject([[], { state: "started", claim: otherClaim }]);
    await large.change({ "expanded.at": now });
    await large.changeRow({ claim });
    await large.continueApart();
    expect([large.due, await large.row()]).toMatchObject([[], { state: "started", claim }]);
  });
});
