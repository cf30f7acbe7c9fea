import { generateKeyPairSync, randomBytes } from "node:crypto";
import {
  type Bus,
  closeBus,
  connectBus,
  ensureStreams,
  handleRequest,
  lastMessage,
  openBucket,
  publish,
  type RequestListener,
  sendRequest,
} from "@herald/bus";
import { busUsers } from "@herald/bus/permissions";
import {
  audienceRequests,
  DeliverBatchV1,
  type Delivery,
  deliveryRequests,
  type EventContract,
  ExpandedV1,
  ExpandV1,
  installation,
  type Lane,
  type Notification,
  type NotificationContent,
  type NotificationId,
  newDeviceId,
  newNotificationId,
  newProjectId,
  notificationRequests,
  type Platform,
  type ProjectId,
  type Provider,
  projectRulesKey,
  providerRequests,
  type Recipient,
  RulesRecord,
  SendOneV1,
  SendV1,
} from "@herald/contracts";
import { createLogger, readConfig } from "@herald/kit";
import { type Simulators, startSimulators } from "@herald/simulators";
import {
  type Broker,
  eventually,
  type FaultyProxy,
  type FreshDatabase,
  faultyProxy,
  freshDatabase,
  readPublished,
  startBroker,
} from "@herald/testing";
import { expect } from "vitest";
import type { z } from "zod";
import { createApp, type Overrides } from "../src/app.ts";
import { DispatchConfig } from "../src/config.ts";
import { type DeliveryDocument, deliveryCollection } from "../src/stores/delivery-document.ts";
import { notificationCollection } from "../src/stores/notification-document.ts";
import { embeddedRows } from "../src/stores/rows.ts";

const silent = createLogger({ service: "test", level: "silent" });
const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
const key = privateKey.export({ type: "pkcs8", format: "pem" }).toString();

export const day = 86_400_000;

export type DispatchTest = Awaited<ReturnType<typeof startDispatchTest>>;

/** A device for APNs, whose tokens are hexadecimal. The token begins with `tag`, which scripts match; none matches "00". */
export const device = (tag = "00", change: Partial<Recipient> = {}): Recipient => ({
  id: newDeviceId(new Date()),
  token: (tag + randomBytes(32).toString("hex")).slice(0, 64),
  tokenAt: Date.parse("2026-01-01"),
  ...change,
});

export const devices = (count: number, tag = "00"): Recipient[] =>
  Array.from({ length: count }, () => device(tag)).sort((one, other) => (one.id < other.id ? -1 : 1));

let lastId = 0;
/** A notification id that is later than all before it: those of one millisecond are in no order. */
export const nextNotificationId = (): NotificationId => {
  lastId = Math.max(lastId + 1, Date.now());
  return newNotificationId(new Date(lastId));
};

/** Starts dispatch with its own broker, database and simulators. The test plays gateway and registry. */
export const startDispatchTest = async (environment: Record<string, string> = {}, overrides: Overrides = {}) => {
  const clock: Parts["clock"] = { ahead: 0, stoppedAt: undefined };
  const now = () => new Date((clock.stoppedAt ?? Date.now()) + clock.ahead);
  const [broker, database, simulators] = await Promise.all([
    startBroker(),
    freshDatabase({ service: "dispatch" }),
    startSimulators({
      now: () => now().getTime(),
      apns: { now: () => now().getTime() },
      fcm: { now: () => now().getTime() },
    }),
  ]);
  const [natsProxy, mongoProxy] = await Promise.all([faultyProxy(broker.url), faultyProxy(database.url)]);
  const bus = await connectBus({
    url: broker.url,
    name: "dispatch-test",
    inboxPrefix: busUsers.gateway.inboxPrefix,
    log: silent,
  });
  await ensureStreams(bus, { replicas: 1, sizeFactor: 0.01 });
  const rules = openBucket(bus, "push_projects", RulesRecord);
  await rules.put(projectRulesKey(installation), { projectId: installation, kinds: [] });
  // Registry's response when dispatch asks which of the waiting devices have moved.
  const moved = new Set<string>();
  // … and which do not want the kind, if it asks.
  const muted = new Set<string>();
  const answering = handleRequest(bus, audienceRequests.check, async ({ devices: asked, kind }) => ({
    moved: asked.map(({ id }) => id).filter((id) => moved.has(id)),
    ...(kind && { muted: asked.map(({ id }) => id).filter((id) => muted.has(id)) }),
  }));
  const config = readConfig(DispatchConfig, {
    HERALD_NATS_URL: natsProxy.url,
    ...broker.loginOf("dispatch"),
    HERALD_MONGO_URL: mongoProxy.url,
    HERALD_DATABASE_PREFIX: database.prefix,
    HERALD_DISPATCH_MASTER_KEYS: `m1:${randomBytes(32).toString("base64")}`,
    HERALD_OPEN_KEYS: `o1:${randomBytes(32).toString("base64")}`,
    HERALD_DISPATCH_CUSTOM_ENDPOINTS: "true",
    HERALD_PORT: "0",
    HERALD_METRICS_PORT: "0",
    HERALD_LOG_LEVEL: "silent",
    ...environment,
  });
  const fate = { crashes: 0 };
  const random = () => {
    if (fate.crashes-- > 0) throw new Error("the process died");
    return 0.5;
  };
  const app = createApp(config, { now, random, sweepEveryMs: 200, ...overrides });
  await app.start();
  const parts = {
    fate,
    moved,
    muted,
    answering,
    broker,
    database,
    simulators,
    natsProxy,
    mongoProxy,
    bus,
    clock,
    now,
    app,
    config,
  };
  await ready(parts);
  return { ...parts, ...actions(parts), stop: () => stop(parts) };
};

type Parts = {
  /** How many of the next batches crash between their pushes and the write of their outcomes. */
  fate: { crashes: number };
  /** Devices that registry reports as deleted or moved to another user. */
  moved: Set<string>;
  /** Devices that registry reports as switched off. */
  muted: Set<string>;
  answering: RequestListener;
  broker: Broker;
  database: FreshDatabase;
  simulators: Simulators;
  natsProxy: FaultyProxy;
  mongoProxy: FaultyProxy;
  bus: Bus;
  clock: { ahead: number; stoppedAt: number | undefined };
  now: () => Date;
  app: ReturnType<typeof createApp>;
  config: DispatchConfig;
};

const ready = ({ app }: Parts) =>
  eventually(async () => {
    const response = await fetch(`${app.address()}/readyz`);
    if (response.status !== 200) throw new Error(await response.text());
  });

const stop = async ({ app, answering, bus, natsProxy, mongoProxy, simulators, broker, database }: Parts) => {
  expect(await app.stop()).toBe(true);
  await answering.stop();
  await closeBus(bus);
  await Promise.all([natsProxy.stop(), mongoProxy.stop()]);
  await Promise.all([simulators.stop(), broker.stop(), database.drop()]);
};

const actions = ({ broker, bus, simulators, database, clock, now }: Parts) => {
  const settings = (change: Record<string, unknown> = {}) => ({
    key_id: "ABCDEFGHIJ",
    team_id: "KLMNOPQRST",
    private_key: key,
    bundle_id: "com.example.app",
    environment: "sandbox",
    endpoint: simulators.apns.url,
    ca: simulators.ca,
    ...change,
  });
  const putProvider = (projectId: ProjectId, change: Record<string, unknown> = {}, provider: Provider = "apns") =>
    sendRequest(bus, providerRequests.put, { projectId, provider, settings: settings(change) });

  const get = (projectId: ProjectId, notificationId: NotificationId): Promise<Notification> =>
    sendRequest(bus, notificationRequests.get, { projectId, notificationId });

  /** The expansion that dispatch commanded. */
  const expansion = (projectId: ProjectId, notificationId: NotificationId) =>
    eventually(async () => {
      const subject = ExpandV1.subject({ projectId, notificationId, page: 0 } as ExpandV1);
      const found = await lastMessage(bus, "PUSH_CMD", subject, ExpandV1);
      if (!found) throw new Error("nothing is expanded");
      return found.data;
    });

  return {
    settings,
    putProvider,
    get,
    expansion,

    /** A project that can send to iOS. */
    project: async (): Promise<ProjectId> => {
      const projectId = newProjectId(new Date());
      await putProvider(projectId);
      return projectId;
    },

    /** Accepts a notification, as the gateway does. */
    send: async (
      projectId: ProjectId,
      change: Partial<SendV1> = {},
      content: Partial<NotificationContent> = {},
    ): Promise<NotificationId> => {
      const notificationId = nextNotificationId();
      const data: SendV1 = {
        projectId,
        notificationId,
        content: { title: "Hello", targets: ["all"], ...content },
        acceptedAt: now().toISOString(),
        expiresAt: new Date(now().getTime() + day).toISOString(),
        ...change,
      };
      await publish(bus, SendV1, data, { id: data.notificationId });
      return data.notificationId;
    },

    /** Accepts a notification to few devices, as the gateway does. */
    sendSmall: async (projectId: ProjectId, content: Partial<NotificationContent>): Promise<NotificationId> => {
      const notificationId = nextNotificationId();
      const at = now();
      const send = {
        projectId,
        notificationId,
        content: { title: "Hello", targets: [], ...content },
        acceptedAt: at.toISOString(),
        expiresAt: new Date(at.getTime() + day).toISOString(),
      };
      await publish(bus, SendOneV1, send, { id: notificationId });
      return notificationId;
    },

    /** Partitions a notification into a batch for each list of devices, as registry does, once dispatch has commanded it. */
    partition: async (
      projectId: ProjectId,
      notificationId: NotificationId,
      batches: readonly (readonly Recipient[])[],
      {
        platform = "ios" as Platform,
        provider = undefined as Provider | undefined,
        lane = "broadcast" as Lane,
        from = 0,
        of = batches.length,
      } = {},
    ) => {
      await expansion(projectId, notificationId);
      for (const [index, batch] of batches.entries()) {
        const data: DeliverBatchV1 = {
          batchId: `${notificationId}/0/${from + index}`,
          projectId,
          notificationId,
          lane,
          platform,
          ...(provider && { provider }),
          devices: [...batch],
        };
        // The queue accepts eight batches per project; registry waits for room, too.
        await eventually(() => publish(bus, DeliverBatchV1, data, { id: data.batchId }));
      }
      if (from + batches.length < of) return;
      const expanded = { n: 0, batches: of, devices: batches.flat().length, unmatched: [] };
      await publish(bus, ExpandedV1, { projectId, notificationId, ...expanded }, { id: `${notificationId}/expanded` });
    },

    /** Waits until a notification is final, and checks that its counts always add up. */
    final: (projectId: ProjectId, notificationId: NotificationId): Promise<Notification> =>
      eventually(async () => {
        const notification = await get(projectId, notificationId);
        addsUp(notification);
        if (notification.completed_at === undefined)
          throw new Error(`it is ${notification.status}: ${JSON.stringify(notification.counts)}`);
        expect(notification.counts.pending).toBe(0);
        return notification;
      }),

    cancel: (projectId: ProjectId, notificationId: NotificationId): Promise<Notification> =>
      sendRequest(bus, notificationRequests.cancel, { projectId, notificationId }),

    deliveries: async (projectId: ProjectId, notificationId: NotificationId): Promise<Delivery[]> => {
      const page = { by: "page", page: 1, perPage: 100 } as const;
      return (await sendRequest(bus, deliveryRequests.list, { projectId, notificationId, page })).data;
    },

    /** The ledger of a notification, embedded or in `deliveries`. */
    rows: async (notificationId: NotificationId): Promise<DeliveryDocument[]> => {
      const db = database.client.db(database.name);
      const document = await notificationCollection(db).findOne({ _id: notificationId });
      const stored = await deliveryCollection(db).find({ notificationId }).sort({ _id: 1 }).toArray();
      return [...(document ? embeddedRows(document) : []), ...stored];
    },

    /** The last event of a kind in a project. */
    lastEvent: async <Schema extends z.ZodType>(
      projectId: ProjectId,
      contract: EventContract<Schema>,
    ): Promise<z.output<Schema> | undefined> => {
      const subject = contract.filter.replace("*", projectId);
      const last = (await readPublished(broker, subject)).at(-1);
      return last && contract.schema.parse(JSON.parse(last.body));
    },

    /** Advances dispatch's clock but not the broker's, so the sweep has to find work that is due then. */
    pass: (ms: number) => {
      clock.ahead += ms;
    },

    /** Stops dispatch's clock: only `pass` moves it, however long a step takes. */
    stopClock: () => {
      clock.stoppedAt = Date.now();
    },
    startClock: () => {
      clock.stoppedAt = undefined;
    },
  };
};

export const addsUp = ({ counts }: Pick<Notification, "counts">) => {
  const { devices, accepted, failed, expired, cancelled, skipped, pending } = counts;
  expect(accepted + failed + expired + cancelled + skipped + pending).toBe(devices);
};
