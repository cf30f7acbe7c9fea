import {
  type Bus,
  closeBus,
  connectBus,
  consume,
  type DeadMessage,
  defineDeadLetterHandler,
  defineHandler,
  ensureStreams,
  handleRequest,
  type MessageDelivery,
  publish,
  type RequestListener,
  sendRequest,
} from "@herald/bus";
import { busUsers } from "@herald/bus/permissions";
import {
  type DataOf,
  deliveryRequests,
  NotificationOpenedV1,
  newDeviceId,
  newNotificationId,
  newProjectId,
  OpenGroupV1,
  openRequests,
  ProjectDeletedV1,
  type ProjectId,
  type StatsRequest,
  statsRequests,
} from "@herald/contracts";
import { createLogger, readConfig } from "@herald/kit";
import {
  type Broker,
  type BrokerHands,
  eventually,
  type FaultyProxy,
  type FreshDatabase,
  faultyProxy,
  freshDatabase,
  operateBroker,
  startBroker,
} from "@herald/testing";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createApp } from "../src/app.ts";
import { AnalyticsConfig } from "../src/config.ts";
import { openedEvent, reportRowId } from "../src/domain/report.ts";
import { reportId } from "../src/domain/stats-delta.ts";
import { environmentOf } from "./analytics-fixture.ts";

const log = createLogger({ service: "test", level: "silent" });
let broker: Broker;
let database: FreshDatabase;
let proxy: FaultyProxy;
let bus: Bus;
let app: ReturnType<typeof createApp>;
let listening: Awaited<ReturnType<typeof consume>>;
let hands: BrokerHands;
let dispatch: RequestListener;
/** Every `notification.opened` that a consumer outside of Herald gets, by notification. */
const published: { id: string; data: DataOf<typeof NotificationOpenedV1> }[] = [];

/** Messages that analytics gave up on. */
const deadLetters: DeadMessage[] = [];

const configFor = (mongoUrl: string) => readConfig(AnalyticsConfig, environmentOf(broker, mongoUrl, database));

beforeAll(async () => {
  [broker, database] = await Promise.all([startBroker(), freshDatabase({ service: "analytics" })]);
  proxy = await faultyProxy(database.url);
  bus = await connectBus({ url: broker.url, name: "test", inboxPrefix: busUsers.gateway.inboxPrefix, log });
  await ensureStreams(bus, { replicas: 1, sizeFactor: 0.01 });
  hands = await operateBroker(broker);
  dispatch = answerAsDispatch();
  app = createApp(configFor(proxy.url));
  await app.start();
  const listener = defineHandler({
    durable: "consumers-opens",
    message: NotificationOpenedV1,
    async handle({ id, data }: MessageDelivery<DataOf<typeof NotificationOpenedV1>>) {
      published.push({ id, data });
    },
  });
  const burier = defineDeadLetterHandler({
    durable: "dispatch-dead-letters",
    async handle({ data }) {
      deadLetters.push(data);
    },
  });
  listening = await consume(bus, [listener, burier]);
});

afterAll(async () => {
  await listening?.stop(1_000);
  await dispatch?.stop();
  await app?.stop();
  await hands?.close();
  await closeBus(bus);
  await proxy?.stop();
  await database?.drop();
  await broker?.stop();
});

/** Kinds and labels by notification, as dispatch would return them. */
const tags = new Map<string, string[]>();
/** Replies as dispatch does, without users. */
const answerAsDispatch = () =>
  handleRequest(bus, deliveryRequests.users, async ({ deliveries }) => ({
    users: deliveries.map(() => null),
    tags: Object.fromEntries(tags),
  }));

const now = () => new Date();
const sample = (devices = 1) => {
  const projectId = newProjectId(now());
  const notificationId = newNotificationId(now());
  const openedAt = "2030-01-01T00:00:00.000Z";
  const opens = Array.from({ length: devices }, () => ({ notificationId, deviceId: newDeviceId(now()), openedAt }));
  return { projectId, notificationId, opens };
};
let messages = 0;
const report = (data: DataOf<typeof OpenGroupV1>) => publish(bus, OpenGroupV1, data, { id: `m${messages++}` });
const count = async (projectId: string, notificationId: string) => {
  const { counts } = await sendRequest(bus, openRequests.count, {
    projectId,
    notificationIds: [notificationId],
  } as never);
  return counts[notificationId];
};
/** The project's opens in the statistics. */
const opened = async (projectId: ProjectId, of: Partial<StatsRequest> = {}) => {
  const day = { from: "2030-01-01T00:00:00.000Z", to: "2030-01-02T00:00:00.000Z" };
  const request = { ...day, interval: "day" as const, timeZone: "UTC", ...of };
  return (await sendRequest(bus, statsRequests.get, { projectId, request })).totals.opened;
};
type Group = DataOf<typeof OpenGroupV1>;
const eventOf = (projectId: ProjectId, open: Group["opens"][number]) =>
  openedEvent({ ...open, projectId, at: new Date(open.openedAt) });
/** Leaves what a process leaves that is killed between the insert and everything else. */
const killedAfterInsert = async (group: Group) => {
  const rows = group.opens.map((open) => ({
    ...open,
    _id: reportRowId(open),
    projectId: group.projectId,
    at: new Date(open.openedAt),
    report: reportId(group.projectId, group.opens),
  }));
  await database.client.db(database.name).collection<{ _id: string }>("opens").insertMany(rows);
};
const publishedOf = (notificationId: string) => published.filter(({ data }) => data.notification_id === notificationId);

describe("an open", () => {
  test("is stored, counted, and published", async () => {
    const { projectId, notificationId, opens } = sample(3);
    await report({ projectId, opens });
    await eventually(async () => expect(await count(projectId, notificationId)).toBe(3));
    await eventually(() => expect(publishedOf(notificationId)).toHaveLength(3));
    const [open] = opens;
    if (open === undefined) throw new Error("no open");
    const event = publishedOf(notificationId).find(({ data }) => data.device_id === open.deviceId);
    expect(event).toEqual({
      id: openedEvent({ ...open, projectId, at: new Date(open.openedAt) }).id,
      data: {
        project_id: projectId,
        notification_id: notificationId,
        device_id: open.deviceId,
        at: open.openedAt,
      },
    });
    const asked = { projectId, notificationId, deviceIds: [open.deviceId, newDeviceId(now())] };
    expect(await sendRequest(bus, openRequests.ofDevices, asked)).toMatchObject({
      openedAt: { [open.deviceId]: open.openedAt },
      receivedAt: {},
    });
  });

  test("is published with the kind and the labels of its notification, and its user and platform", async () => {
    const { projectId, notificationId, opens } = sample();
    tags.set(notificationId, ["kind/order-shipped", "label/campaign/spring"]);
    await report({ projectId, opens: opens.map((open) => ({ ...open, platform: "ios" })) });
    await eventually(() =>
      expect(publishedOf(notificationId)).toMatchObject([
        { data: { kind: "order-shipped", labels: { campaign: "spring" }, platform: "ios" } },
      ]),
    );
  });

  test("that is reported again counts once, keeps its first time and is published once", async () => {
    const { projectId, notificationId, opens } = sample(2);
    const later = opens.map((open) => ({ ...open, openedAt: "2030-01-02T00:00:00.000Z" }));
    await report({ projectId, opens });
    await eventually(async () => expect(await count(projectId, notificationId)).toBe(2));
    await report({ projectId, opens: later });
    const after = sample();
    await report(after);
    await eventually(() => expect(publishedOf(after.notificationId)).toHaveLength(1));
    await eventually(() => expect(publishedOf(notificationId)).toHaveLength(2));
    expect(await count(projectId, notificationId)).toBe(2);
    const { openedAt } = await sendRequest(bus, openRequests.ofDevices, {
      projectId,
      notificationId,
      deviceIds: opens.map(({ deviceId }) => deviceId),
    });
    expect(Object.values(openedAt)).toEqual(opens.map((open) => open.openedAt));
  });

  test("twice in one message counts once", async () => {
    const { projectId, notificationId, opens } = sample(1);
    await report({ projectId, opens: [...opens, ...opens] });
    await eventually(() => expect(publishedOf(notificationId)).toHaveLength(1));
    expect(await count(projectId, notificationId)).toBe(1);
  });

  test("of a hundred messages at once is counted, each device once", async () => {
    const { projectId, notificationId, opens } = sample(1000);
    const increments = Array.from({ length: 100 }, (_, index) => opens.slice(index * 10, index * 10 + 10));
    await Promise.all([...increments, ...increments].map((part) => report({ projectId, opens: part })));
    await eventually(async () => expect(await count(projectId, notificationId)).toBe(1000), { timeoutMs: 30_000 });
    await eventually(() => expect(publishedOf(notificationId)).toHaveLength(1000), { timeoutMs: 30_000 });
  });

  test("that a killed process stored and did not publish is published by the redelivery, and counted once", async () => {
    const { projectId, notificationId, opens } = sample(2);
    await killedAfterInsert({ projectId, opens });
    await report({ projectId, opens });
    await eventually(() => expect(publishedOf(notificationId)).toHaveLength(2));
    expect(publishedOf(notificationId).map(({ id }) => id)).toEqual(
      expect.arrayContaining(opens.map((open) => eventOf(projectId, open).id)),
    );
    expect(await count(projectId, notificationId)).toBe(2);
    await eventually(async () => expect(await opened(projectId)).toBe(2));
  });

  test("of a killed process is published by its own report, not by another that repeats it", async () => {
    const { projectId, notificationId, opens } = sample();
    await killedAfterInsert({ projectId, opens });
    const after = sample();
    await report({ projectId, opens: opens.map((open) => ({ ...open, openedAt: "2030-01-02T00:00:00.000Z" })) });
    await report(after);
    await eventually(() => expect(publishedOf(after.notificationId)).toHaveLength(1));
    expect(publishedOf(notificationId)).toEqual([]);
    await report({ projectId, opens });
    await eventually(() => expect(publishedOf(notificationId)).toHaveLength(1));
    expect(publishedOf(notificationId)[0]?.data.at).toBe("2030-01-01T00:00:00.000Z");
  });

  test("is stored and counted while dispatch is unavailable, and is published once afterwards, with its kind", async () => {
    const { projectId, notificationId, opens } = sample(3);
    tags.set(notificationId, ["kind/order-shipped"]);
    await dispatch.stop();
    try {
      await report({ projectId, opens });
      await eventually(async () => expect(await count(projectId, notificationId)).toBe(3));
      await eventually(async () => expect(await opened(projectId)).toBe(3));
      // Another report of the same open neither publishes it nor waits.
      const [first] = opens;
      if (first === undefined) throw new Error("no open");
      await report({ projectId, opens: [{ ...first, openedAt: "2030-01-01T01:00:00.000Z" }] });
      await eventually(async () => expect(await hands.left("PUSH_OPENS", "analytics-open-groups")).toBe(1));
      expect(publishedOf(notificationId)).toEqual([]);
    } finally {
      dispatch = answerAsDispatch();
    }
    await eventually(() => expect(publishedOf(notificationId)).toHaveLength(3), { timeoutMs: 20_000 });
    expect(publishedOf(notificationId).map(({ data }) => [data.at, data.kind])).toEqual(
      opens.map(({ openedAt }) => [openedAt, "order-shipped"]),
    );
    await eventually(async () => expect(await opened(projectId, { tag: "kind/order-shipped" })).toBe(3));
    expect(await opened(projectId)).toBe(3);
    await eventually(async () => expect(await hands.left("PUSH_OPENS", "analytics-open-groups")).toBe(0));
  });

  test("is counted once and published once when the stream of events refuses it for a while", async () => {
    const { projectId, notificationId, opens } = sample(2);
    const accept = await hands.refuse("PUSH_EVENTS");
    try {
      await report({ projectId, opens });
      await eventually(async () => expect(await opened(projectId)).toBe(2));
      expect(publishedOf(notificationId)).toEqual([]);
    } finally {
      await accept();
    }
    await eventually(() => expect(publishedOf(notificationId)).toHaveLength(2), { timeoutMs: 30_000 });
    expect(await count(projectId, notificationId)).toBe(2);
    expect(await opened(projectId)).toBe(2);
  });

  test("waits while the database is unavailable, and is not lost", async () => {
    const { projectId, notificationId, opens } = sample(5);
    await proxy.cut();
    await report({ projectId, opens });
    await expect(count(projectId, notificationId)).rejects.toMatchObject({ code: "database-unavailable" });
    await proxy.heal();
    await eventually(async () => expect(await count(projectId, notificationId)).toBe(5), { timeoutMs: 20_000 });
    await eventually(() => expect(publishedOf(notificationId)).toHaveLength(5));
  });
});

test("says of a project that opens which had arrived are not stored, until they are", async () => {
  const { projectId, notificationId, opens } = sample(3);
  const stored = async (of: ProjectId, until: Date) =>
    (await sendRequest(bus, openRequests.stored, { projectId: of, until: until.toISOString() })).stored;
  const before = new Date(now().getTime() - 3_600_000);
  await proxy.cut();
  try {
    await report({ projectId, opens });
    const until = new Date(now().getTime() + 3_600_000);
    expect(await stored(projectId, until)).toBe(false);
    // Neither those that arrive later nor those of others count.
    expect(await stored(projectId, before)).toBe(true);
    expect(await stored(newProjectId(now()), until)).toBe(true);
  } finally {
    await proxy.heal();
  }
  const until = now();
  await eventually(async () => expect(await stored(projectId, until)).toBe(true), { timeoutMs: 20_000 });
  const deviceIds = opens.map(({ deviceId }) => deviceId);
  const { openedAt } = await sendRequest(bus, openRequests.ofDevices, { projectId, notificationId, deviceIds });
  expect(Object.keys(openedAt)).toHaveLength(3);
});

test("a malformed group of opens becomes a dead letter and delays nothing", async () => {
  const { projectId, notificationId, opens } = sample(1);
  const poison = { ...OpenGroupV1, schema: { parse: (data: unknown) => data } } as unknown as typeof OpenGroupV1;
  await publish(bus, poison, { projectId, opens: [{ deviceId: "x" }] } as never, { id: "poison" });
  await report({ projectId, opens });
  await eventually(async () => expect(await count(projectId, notificationId)).toBe(1));
  await eventually(() => expect(deadLetters).toHaveLength(1));
  expect(deadLetters[0]).toMatchObject({
    durable: "analytics-open-groups",
    reason: "schema",
    subject: OpenGroupV1.subject({ projectId, opens: [] }),
    body: { projectId, opens: [{ deviceId: "x" }] },
  });
});

test("a deleted project's opens are deleted, and no others", async () => {
  const gone = sample(3);
  const stays = sample(2);
  await report(gone);
  await report(stays);
  await eventually(async () => expect(await count(stays.projectId, stays.notificationId)).toBe(2));
  await eventually(async () => expect(await count(gone.projectId, gone.notificationId)).toBe(3));
  const at = now().toISOString();
  await publish(bus, ProjectDeletedV1, { project_id: gone.projectId, at }, { id: "gone" });
  await eventually(async () => expect(await count(gone.projectId, gone.notificationId)).toBe(0));
  expect(await count(stays.projectId, stays.notificationId)).toBe(2);
});

test("reports its state to probes", async () => {
  await eventually(async () => expect((await fetch(`${app.address()}/readyz`)).status).toBe(200));
  await proxy.cut();
  const answer = await eventually(async () => {
    const response = await fetch(`${app.address()}/readyz`);
    expect(response.status).toBe(503);
    return (await response.json()) as { failing: { check: string }[] };
  });
  expect(answer.failing.map(({ check }) => check)).toEqual(["database"]);
  expect((await fetch(`${app.address()}/livez`)).status).toBe(200);
  await proxy.heal();
  await eventually(async () => expect((await fetch(`${app.address()}/readyz`)).status).toBe(200));
});
