import { randomBytes } from "node:crypto";
import { type Bus, closeBus, connectBus, ensureStreams, handleRequest, publish, sendRequest } from "@herald/bus";
import { busUsers } from "@herald/bus/permissions";
import {
  type DataOf,
  DeliveryAcceptedV1,
  type DeliveryFailedV1,
  deliveryRequests,
  newDeviceId,
  newNotificationId,
  newProjectId,
  OpenGroupV1,
  type Platform,
  type ProjectId,
  type StatsRequest,
  statsRequests,
} from "@herald/contracts";
import { createLogger, readConfig } from "@herald/kit";
import {
  type Broker,
  eventually,
  type FaultyProxy,
  type FreshDatabase,
  faultyProxy,
  freshDatabase,
  operateBroker,
  startBroker,
} from "@herald/testing";
import { expect } from "vitest";
import { createApp } from "../src/app.ts";
import { AnalyticsConfig } from "../src/config.ts";
import { createStores } from "../src/stores/create-stores.ts";

/** One key ring per test file, so that analytics can decrypt its secrets after a restart. */
const masterKeys = `k1:${randomBytes(32).toString("base64")}`;
export const log = createLogger({ service: "test", level: "silent" });

export const acceptedAt = new Date("2030-03-30T12:00:00Z");
const device = () => newDeviceId(acceptedAt);
const devices = (count: number) => Array.from({ length: count }, device);
export const sample = (at = acceptedAt) => ({ projectId: newProjectId(at), notificationId: newNotificationId(at) });
export type Subject = ReturnType<typeof sample>;
/** The ids of a notification as event fields. */
export const idsOf = ({ projectId, notificationId }: Subject) => ({
  project_id: projectId,
  notification_id: notificationId,
});
let messages = 0;
/** A new message id for each call. */
export const messageId = () => ({ id: `m${messages++}` });

export const accept = (
  { projectId, notificationId }: Subject,
  at: string,
  count: number,
  platform: Platform = "ios",
): DataOf<typeof DeliveryAcceptedV1> => {
  const batchId = `${notificationId}/0/${messages++}`;
  return {
    project_id: projectId,
    notification_id: notificationId,
    at,
    batch_id: batchId,
    platform,
    devices: devices(count),
  };
};
export const fail = (of: Subject, at: string, reasons: readonly string[]): DataOf<typeof DeliveryFailedV1> => {
  const { devices: _, ...facts } = accept(of, at, 0);
  const failures = reasons.map((reason) => ({ device_id: device(), status: "failed" as const, reason }));
  return { ...facts, failures, unregistered: [] };
};
export const opensAt = (
  { projectId, notificationId }: Subject,
  times: readonly string[],
  platform?: Platform,
): DataOf<typeof OpenGroupV1> => ({
  projectId,
  opens: times.map((openedAt) => ({
    notificationId,
    deviceId: device(),
    ...(platform === undefined ? {} : { platform }),
    openedAt,
  })),
});

/** The environment variables of an analytics process. */
export const environmentOf = (broker: Broker, mongoUrl: string, database: FreshDatabase): Record<string, string> => ({
  HERALD_NATS_URL: broker.url,
  ...broker.loginOf("analytics"),
  HERALD_MONGO_URL: mongoUrl,
  HERALD_LOG_LEVEL: "silent",
  HERALD_PORT: "0",
  HERALD_METRICS_PORT: "0",
  HERALD_DATABASE_PREFIX: database.prefix,
  HERALD_ANALYTICS_MASTER_KEYS: masterKeys,
  // The receivers of tests run on this machine.
  HERALD_ANALYTICS_WEBHOOKS_ANY_HOST: "true",
});

export type AnalyticsTest = Awaited<ReturnType<typeof startAnalyticsTest>>;

/** A broker, a database behind a proxy, and an analytics that can be restarted; without it for tests that start their own. */
export const startAnalyticsTest = async ({ withApp = true }: { withApp?: boolean } = {}) => {
  const [broker, database] = await Promise.all([startBroker(), freshDatabase({ service: "analytics" })]);
  const proxy: FaultyProxy = await faultyProxy(database.url);
  const bus: Bus = await connectBus({
    url: broker.url,
    name: "test",
    inboxPrefix: busUsers.gateway.inboxPrefix,
    log,
  });
  await ensureStreams(bus, { replicas: 1, sizeFactor: 0.05 });
  const hands = await operateBroker(broker);
  // Replies as dispatch does, with the users and tags that a test sets.
  const users = new Map<string, string>();
  const tags = new Map<string, string[]>();
  const buttons = new Map<string, string[]>();
  const answering = handleRequest(bus, deliveryRequests.users, async ({ deliveries }) => ({
    users: deliveries.map(({ deviceId }) => users.get(deviceId) ?? null),
    tags: Object.fromEntries(tags),
    buttons: Object.fromEntries(buttons),
  }));
  const db = database.client.db(database.name);
  const environment = environmentOf(broker, proxy.url, database);
  const newApp = () => createApp(readConfig(AnalyticsConfig, environment));

  const stats = (projectId: ProjectId, request: Partial<StatsRequest> = {}) =>
    sendRequest(bus, statsRequests.get, {
      projectId,
      request: {
        from: "2030-03-30T12:00:00.000Z",
        to: "2030-03-31T12:00:00.000Z",
        interval: "hour",
        timeZone: "UTC",
        ...request,
      },
    });
  const totals = async (projectId: ProjectId, request: Partial<StatsRequest> = {}) => {
    const { sent, failed, opened } = (await stats(projectId, request)).totals;
    return { sent, failed, opened };
  };
  /** Waits until every stored delta is in all of its rollups: a run writes them one after the other. */
  const aggregated = () =>
    eventually(async () => expect(await db.collection("statsDeltas").countDocuments({ aggregated: false })).toBe(0), {
      timeoutMs: 30_000,
    });
  const test = {
    broker,
    bus,
    hands,
    database,
    db,
    proxy,
    environment,
    app: newApp(),
    stats,
    totals,
    /** The users of devices, for future opens. */
    users,
    /** Kinds and labels of notifications, for future opens. */
    tags,
    /** Ids of buttons of notifications, for future opens. */
    buttons,
    stores: () => createStores(db),
    aggregated,
    /** Starts a new analytics after the previous one was stopped. */
    restart: async (): Promise<void> => {
      test.app = newApp();
      await test.app.start();
      // The request handlers subscribe on another connection, so the broker may not know them yet.
      await eventually(() => stats(newProjectId(acceptedAt)));
    },
    /**
     * Waits until everything published so far is counted. A later message of each durable shows that the durables know of everything
     * before it, and not that all of it is handled: batches are handled concurrently.
     */
    settled: async (): Promise<void> => {
      const probe = sample();
      await publish(bus, DeliveryAcceptedV1, accept(probe, "2030-03-30T12:00:00Z", 1), messageId());
      await publish(bus, OpenGroupV1, opensAt(probe, ["2030-03-30T12:00:00Z"]), messageId());
      await eventually(async () => expect(await totals(probe.projectId)).toEqual({ sent: 1, failed: 0, opened: 1 }), {
        timeoutMs: 30_000,
      });
      // In the order of their way: what is settled in one place is in the next one by then.
      await eventually(
        async () => {
          expect(await hands.left("PUSH_OPENS", "analytics-open-groups")).toBe(0);
          expect(await hands.left("PUSH_RECEIPTS", "analytics-receipt-groups")).toBe(0);
          expect(await hands.left("PUSH_EVENTS", "analytics-events")).toBe(0);
        },
        { timeoutMs: 30_000 },
      );
      await aggregated();
    },
    stop: async (): Promise<void> => {
      await test.app.stop();
      await answering.stop();
      await hands.close();
      await closeBus(bus);
      await proxy.stop();
      await database.drop();
      await broker.stop();
    },
  };
  if (withApp) await test.restart();
  return test;
};
