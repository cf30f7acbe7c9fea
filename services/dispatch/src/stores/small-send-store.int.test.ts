import {
  type GroupedSend,
  newDeviceId,
  newNotificationIds,
  newProjectId,
  type Recipient,
  targetKey,
  userKey,
} from "@herald/contracts";
import { type FreshDatabase, freshDatabase } from "@herald/testing";
import { type CommandStartedEvent, type Db, type Document, MongoClient } from "mongodb";
import { afterAll, beforeAll, expect, test } from "vitest";
import { endOne, insertOne } from "../../test/small-sends-fixture.ts";
import { apnsId, rootBatchId } from "../domain/batch.ts";
import type { Outcome } from "../domain/outcome.ts";
import { settleRow } from "../domain/settle-row.ts";
import { deliveryCollection, type Run } from "./delivery-document.ts";
import { createDeliveryList } from "./delivery-list.ts";
import { createDeliveryStore } from "./delivery-store.ts";
import { createDeliveryTrace, createDeliveryUsers } from "./delivery-trace.ts";
import { createUserEraser } from "./erase-user.ts";
import { createLedger } from "./ledger.ts";
import { type Expanded, notificationCollection, notificationHints } from "./notification-document.ts";
import { createNotificationStore } from "./notification-store.ts";
import { createRecipientStore } from "./recipient-store.ts";
import { createSmallSendStore } from "./small-send-store.ts";

let database: FreshDatabase;
let db: Db;
const stores = () => ({
  sends: createSmallSendStore(db),
  notifications: createNotificationStore(db),
  deliveries: createDeliveryStore(db),
  ledger: createLedger(db),
  list: createDeliveryList(db).list,
  trace: createDeliveryTrace(db).trace,
  usersOf: createDeliveryUsers(db).usersOf,
});
let all: ReturnType<typeof stores>;
beforeAll(async () => {
  database = await freshDatabase();
  db = database.client.db(database.name);
  all = stores();
  for (const { ensureIndexes } of [all.notifications, all.deliveries]) await ensureIndexes();
});
afterAll(() => database.drop());

const projectId = newProjectId(new Date());
const now = new Date("2030-01-01T12:00:00.000Z");
const claim = { at: 1, sequence: 7 };
const page = { by: "page", page: 1, perPage: 10 } as const;

const device = (userId?: string): Recipient => ({
  id: newDeviceId(new Date()),
  token: "a".repeat(64),
  tokenAt: 0,
  ...(userId === undefined ? {} : { userId }),
});

/** Stores a send to some devices, in its state before the pushes. */
const store = async (
  devices: readonly Recipient[],
  { content, list, recipients }: Partial<GroupedSend> & { readonly list?: Expanded["list"] } = {},
) => {
  const [notificationId = "ntf_" as const] = newNotificationIds(new Date(), 1);
  const send: GroupedSend = {
    projectId,
    notificationId,
    content: content ?? { title: "Hello", targets: ["token:a"] },
    ...(recipients && { recipients }),
    acceptedAt: now.toISOString(),
    expiresAt: new Date(now.getTime() + 60_000).toISOString(),
  };
  const batches =
    devices.length === 0
      ? []
      : [
          {
            batchId: rootBatchId(notificationId, 0),
            projectId,
            notificationId,
            lane: "direct" as const,
            platform: "ios" as const,
            devices: [...devices],
          },
        ];
  const stored = await insertOne(all.sends, { send, batches, unmatched: [], ...(list && { list }) }, claim, now);
  return { send, id: notificationId, ...stored };
};

const settled = (run: Run, outcome: Outcome = { kind: "accepted" }) => ({
  run,
  settlement: settleRow({
    devices: run.devices,
    outcomes: run.devices.map(() => outcome),
    startedAt: now,
    now,
    expiresAt: new Date(now.getTime() + 60_000),
    cancelled: false,
    keepDevices: false,
    random: 0,
  }),
});

const rowsStored = (id: string) => deliveryCollection(db).countDocuments({ notificationId: id as never });

test("a send that ends at once stays one document", async () => {
  const [one, two] = [device("anna"), device()];
  const { id, document, runs } = await store([one, two]);
  expect((await all.list({ projectId, notificationId: id }, page)).data).toMatchObject([
    { device_id: one.id, user_id: "anna", status: "pending", attempts: 0 },
    { device_id: two.id, status: "pending" },
  ]);
  expect(await all.trace(projectId, id, two.id)).toMatchObject({ delivery: { status: "pending" } });
  const stored = () => notificationCollection(db).findOne({ _id: id, projectId });
  expect(await stored()).toMatchObject({ status: "sending", byStatus: true });
  expect(
    await endOne(
      all.sends,
      document,
      runs.map((run) => settled(run)),
      now,
    ),
  ).toMatchObject({
    state: { status: "completed", end: { tally: { devices: 2, accepted: 2 } } },
    events: [{ event: "DeliveryAcceptedV1" }],
    stored: [],
  });
  expect(await stored()).not.toHaveProperty("byStatus");
  expect(await rowsStored(id)).toBe(0);
  expect((await all.notifications.get(projectId, id))?.end).toMatchObject({ tally: { accepted: 2 } });
  expect((await all.list({ projectId, notificationId: id, status: "accepted" }, page)).data).toMatchObject([
    { device_id: one.id, user_id: "anna", provider_id: apnsId(id, one.id), attempts: 1 },
    { device_id: two.id, attempts: 1 },
  ]);
  const first = await all.list({ projectId, notificationId: id }, { by: "key", perPage: 1, after: "" });
  expect(first).toMatchObject({ data: [{ device_id: one.id }], next: expect.any(String) });
  expect(
    await all.list({ projectId, notificationId: id }, { by: "key", perPage: 1, after: String(Object(first).next) }),
  ).toMatchObject({ data: [{ device_id: two.id }], next: null });
  expect((await all.trace(projectId, id, one.id)).attempts).toMatchObject([{ attempt: 1, outcome: "accepted" }]);
  expect(
    await all.usersOf(
      projectId,
      [one, two].map((each) => ({ notificationId: id, deviceId: each.id })),
    ),
  ).toEqual({ users: ["anna", null], tags: {}, buttons: {} });
  const row = await notificationCollection(db).findOne({ _id: id });
  expect(row?.rows?.[0]).not.toHaveProperty("devices");
  for (const field of ["step", "nextAt", "claim"]) expect(row).not.toHaveProperty(field);
});

test("a send without devices ends as it is stored", async () => {
  const { document, runs } = await store([]);
  expect({ document, runs }).toMatchObject({ document: { status: "completed", end: {} }, runs: [] });
  for (const field of ["step", "nextAt", "claim"]) expect(document).not.toHaveProperty(field);
});

test("the outbox has the events that the ledger lacks, and a repeated end gives the same result", async () => {
  const { document, runs } = await store([device()]);
  const outcomes = runs.map((run) =>
    settled(run, { kind: "rejected", reason: "internal", providerReason: "BadTopic" }),
  );
  const ended = await endOne(all.sends, document, outcomes, now);
  expect(ended?.stored).toMatchObject([{ event: "DeliveryFailedV1" }]);
  expect(await endOne(all.sends, document, outcomes, now)).toEqual(ended);
});

test("many that end in the same moment all end", async () => {
  const some = await Promise.all(Array.from({ length: 40 }, () => store([device()])));
  const ended = await Promise.all(
    some.map(({ document, runs }) =>
      endOne(
        all.sends,
        document,
        runs.map((run) => settled(run)),
        now,
      ),
    ),
  );
  expect(ended.every((one) => one?.state.end.tally.accepted === 1)).toBe(true);
  const found = await Promise.all(some.map(({ id }) => all.notifications.get(projectId, id)));
  expect(found.map((one) => one?.end?.tally.accepted)).toEqual(some.map(() => 1));
});

test("a send that is cancelled meanwhile does not end: its rows move to the ledger of large sends", async () => {
  const [one] = [device("anna")];
  const { id, document, runs } = await store([one]);
  const other = await store([device()]);
  expect(await all.notifications.cancelBegun(document, now)).toBe(true);
  const [ended, good] = await Promise.all(
    [{ document, runs }, other].map((each) =>
      endOne(
        all.sends,
        each.document,
        each.runs.map((run) => settled(run)),
        now,
      ),
    ),
  );
  expect(ended).toBeUndefined();
  expect(good).toMatchObject({ state: { status: "completed" } });
  for (let times = 0; times < 2; times++) await all.sends.moveToDeliveries(projectId, id);
  expect(await rowsStored(id)).toBe(1);
  expect((await all.list({ projectId, notificationId: id }, page)).data).toMatchObject([{ status: "pending" }]);
  for (const run of runs) expect(await all.deliveries.settle(run, settled(run).settlement, now)).toHaveLength(1);
  expect(await all.ledger.sums(projectId, id)).toMatchObject({ tally: { devices: 1, accepted: 1 } });
});

test("a move to the other ledger that a crash interrupted is completed by the next caller", async () => {
  const { id, document, runs } = await store([device()]);
  await notificationCollection(db).updateOne({ _id: id }, { $set: { "claim.open": false } });
  expect(
    await endOne(
      all.sends,
      document,
      runs.map((run) => settled(run)),
      now,
    ),
  ).toBeUndefined();
  expect((await all.list({ projectId, notificationId: id }, page)).data).toHaveLength(1);
  await all.sends.moveToDeliveries(projectId, id);
  const again = await all.deliveries.restart(projectId, rootBatchId(id, 0), claim, now);
  expect(again).toMatchObject({ starts: 2, devices: [{ repeat: true }] });
  expect(await all.deliveries.restart(projectId, rootBatchId(id, 0), { at: 1, sequence: 8 }, now)).toBeUndefined();
});

test("no row of an ended send is moved", async () => {
  const { id, document, runs } = await store([device()]);
  await endOne(
    all.sends,
    document,
    runs.map((run) => settled(run)),
    now,
  );
  await all.sends.moveToDeliveries(projectId, id);
  expect(await rowsStored(id)).toBe(0);
  expect((await all.list({ projectId, notificationId: id }, page)).data).toHaveLength(1);
});

test("an erased user is in no ledger any more, whether their send has ended or is under way", async () => {
  const ended = await store([device("eve"), device("anna")]);
  await endOne(
    all.sends,
    ended.document,
    ended.runs.map((run) => settled(run)),
    now,
  );
  const underWay = await store([device("eve")]);
  const { erase } = createUserEraser(db, all.sends, createRecipientStore(db));
  await erase({ projectId, key: userKey(projectId, "eve"), at: now });
  const usersIn = async (id: typeof ended.id) =>
    (await all.list({ projectId, notificationId: id }, page)).data.map(({ user_id }) => user_id);
  expect(await usersIn(ended.id)).toEqual([undefined, "anna"]);
  expect(await usersIn(underWay.id)).toEqual([undefined]);
  const [row] = await deliveryCollection(db).find({ notificationId: underWay.id }).toArray();
  expect(JSON.stringify(row)).not.toContain('"eve"');
});

test("the erasure of a device's user leaves what it got for a former user, in either ledger", async () => {
  const id = newDeviceId(new Date());
  const of = (userId?: string): Recipient => ({ ...device(userId), id });
  const list = { lastLine: 1, lines: 1, unmatched: [] };
  const listOf = (key: string) => ({
    content: { title: "Hello", targets: [], recipients: { kind: "user" as const, lines: 1 } },
    recipients: [[{ n: 1, key, values: {} }]],
    list,
  });
  const to = (...targets: string[]) => ({ content: { title: "Hello", targets } });
  const sent = {
    former: await store([of("bob")], to("user:bob")),
    formerList: await store([of("bob")], listOf("bob")),
    formerDevice: await store([of("bob")], to(`device:${id}`)),
    both: await store([of("bob")], to("user:anna", `device:${id}`)),
    hers: await store([of("anna")], to("user:anna")),
    hersByList: await store([of("anna")], listOf("anna")),
    hersByDevice: await store([of("anna")], to(`device:${id}`)),
    noOnes: await store([of()], to("metadata:email=a")),
  };
  const moved = {
    former: await store([of("bob")], to("user:bob")),
    formerDevice: await store([of("bob")], to(`device:${id}`)),
    hers: await store([of("anna")], to("user:anna")),
  };
  for (const one of Object.values(moved)) {
    await all.notifications.cancelBegun(one.document, now);
    await all.sends.moveToDeliveries(projectId, one.id);
  }
  const { erase } = createUserEraser(db, all.sends, createRecipientStore(db));
  const erased = { projectId, key: userKey(projectId, "anna"), at: now };
  await erase({ ...erased, devices: [id], tokens: [] });
  await erase(erased);
  const titles = async (some: Record<string, { readonly id: typeof sent.former.id }>) =>
    Object.fromEntries(
      await Promise.all(
        Object.entries(some).map(
          async ([name, one]) => [name, (await all.notifications.get(projectId, one.id))?.content.title] as const,
        ),
      ),
    );
  const [gone, kept] = ["[erased]", "Hello"];
  expect(await titles(sent)).toEqual({
    ...{ former: kept, formerList: kept, formerDevice: kept, both: kept },
    ...{ hers: gone, hersByList: gone, hersByDevice: gone, noOnes: gone },
  });
  expect(await titles(moved)).toEqual({ former: kept, formerDevice: kept, hers: gone });
});

test("an erasure of many devices reads no index from end to end", async () => {
  const client = await new MongoClient(database.url, { monitorCommands: true }).connect();
  const commands: Document[] = [];
  client.on("commandStarted", ({ command }: CommandStartedEvent) => commands.push(command));
  const watched = client.db(database.name);
  const { erase } = createUserEraser(watched, createSmallSendStore(watched), createRecipientStore(watched));
  const devices = Array.from({ length: 150 }, () => newDeviceId(new Date()));
  const tokens = devices.map((id) => targetKey(projectId, `token:${id}`));
  await erase({ projectId, key: userKey(projectId, "anna"), at: now, devices, tokens });
  const asked = commands.filter((command) => command.find === "notifications");
  expect(new Set(asked.map(({ hint }) => hint))).toEqual(
    new Set([notificationHints.users, notificationHints.recipient, notificationHints.recipients]),
  );
  for (const { lsid: _lsid, $db: _db, ...explain } of asked) {
    const plan = await db.command({ explain, verbosity: "queryPlanner" });
    const text = JSON.stringify({ ...plan, command: undefined });
    expect(text).toContain(`"${explain.hint}"`);
    // How the plans of DocumentDB and MongoDB show that an index is read from end to end.
    const whole = new RegExp(`${Buffer.from("fullScan").toString("hex")}|"projectId":\\["\\[MinKey, MaxKey\\]"\\]`);
    expect(text.match(whole)).toBeNull();
    expect(text).not.toMatch(/COLLSCAN|Seq Scan/);
  }
  await client.close();
});

test("lists leave out and do not count what Herald sends of its own, with any filter", async () => {
  const counted = await all.notifications.list(projectId, {}, page);
  const join = { event: "join", id: "a", timestamp: 1 } as unknown as NonNullable<GroupedSend["content"]["activity"]>;
  const shown: string[] = [];
  const user = "lists";
  for (let n = 0; n < 9; n++) {
    const isOwn = n % 3 === 1;
    const content = { title: "Hello", targets: [`user:${user}`], kind: "orders", ...(isOwn && { activity: join }) };
    const { id } = await store([], { content });
    if (!isOwn) shown.push(id);
  }
  shown.sort();
  for (const filter of [{ userId: user }, { kind: "orders" }, { kind: "orders", status: "completed" as const }])
    for (const [number, from, to] of [
      [1, 0, 4],
      [2, 4, 6],
      [3, 6, 6],
    ] as const) {
      const found = await all.notifications.list(projectId, filter, { by: "page", page: number, perPage: 4 });
      expect(found.data.map(({ _id }) => _id)).toEqual(shown.slice(from, to));
      expect(found).toMatchObject({ pagination: { count: 6 } });
    }
  expect(await all.notifications.list(projectId, {}, page)).toMatchObject({
    pagination: { count: countOf(counted) + 6 },
  });
});

const countOf = (answer: object): number =>
  "pagination" in answer ? (answer.pagination as { count: number }).count : 0;
