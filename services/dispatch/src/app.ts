import {
  type Answering,
  type Bus,
  busStatus,
  type Consuming,
  closeBus,
  connectBus,
  consume,
  consumersReady,
  openBucket,
  publishEvent,
} from "@herald/bus";
import { type Lane, type OutboxEvent, type Platform, ProvidersRecord } from "@herald/contracts";
import {
  createHealth,
  createLifecycle,
  createLogger,
  type Logger,
  startHealthServer,
  startTelemetry,
} from "@herald/kit";
import { connectMongo, createOutbox, type MongoHandle } from "@herald/mongo";
import { createOpenTokens } from "@herald/payload";
import { answerDeliveries } from "./answers/answer-deliveries.ts";
import { answerNotifications } from "./answers/answer-notifications.ts";
import { answerProviders } from "./answers/answer-providers.ts";
import { createFindNotification } from "./answers/find-notification.ts";
import { createProviderRecords } from "./answers/provider-records.ts";
import type { DispatchConfig } from "./config.ts";
import { scheduleSubject } from "./domain/batch-ids.ts";
import { buryDead } from "./handlers/bury-dead.ts";
import { deliverBatch, deliverDurables } from "./handlers/deliver-batch.ts";
import { dropProject } from "./handlers/drop-project.ts";
import { finishExpansion } from "./handlers/finish-expansion.ts";
import { startNotification } from "./handlers/start-notification.ts";
import { wakeDue } from "./handlers/wake-due.ts";
import { apnsId } from "./providers/apns/apns-id.ts";
import { createCarryOut } from "./sending/carry-out.ts";
import { checkSettings } from "./sending/check-settings.ts";
import { createConnectProvider } from "./sending/connect-provider.ts";
import { createExpand } from "./sending/expand.ts";
import { createFairGate } from "./sending/fair-gate.ts";
import { createFinisher } from "./sending/finisher.ts";
import { createMetrics } from "./sending/metrics.ts";
import { createNotificationWatch } from "./sending/notification-watch.ts";
import { createProviderPool } from "./sending/provider-pool.ts";
import { createPublishDue } from "./sending/publish-due.ts";
import { createSchedule } from "./sending/schedule.ts";
import { chunkSize } from "./sending/send-batch.ts";
import { createSweeps } from "./sending/sweeps.ts";
import { createCredentialStore, credentialCollection } from "./stores/credential-store.ts";
import { deliveryCollection } from "./stores/delivery-document.ts";
import { createDeliveryList } from "./stores/delivery-list.ts";
import { createDeliveryStore } from "./stores/delivery-store.ts";
import { createLedgerReads } from "./stores/ledger-reads.ts";
import {
  createNotificationStore,
  type NotificationDocument,
  notificationCollection,
} from "./stores/notification-store.ts";
import { createHttp2Pool } from "./transport/http2-pool.ts";

/** How long a stop may take in all; a batch whose provider is slow gets the greater part of it. */
const stopDeadlineMs = 30_000;
const drainMs = 25_000;
/** Contents in memory: more than are being sent at a time, at some kilobytes each. */
const watchedNotifications = 1_000;
/** What the clock on the bus forgot waits this much longer. */
const usualSweepMs = 2_000;

type Overrides = {
  readonly log?: Logger;
  readonly now?: () => Date;
  /** In [0, 1): the jitter of what is tried again. */
  readonly random?: () => number;
  readonly sweepEveryMs?: number;
};

/** Dispatch, put together. `start` resolves when it listens; it waits for a broker and a database that are away. */
export const createApp = (config: DispatchConfig, overrides: Overrides = {}) => {
  const log = overrides.log ?? createLogger({ service: "dispatch", level: config.HERALD_LOG_LEVEL });
  const lifecycle = createLifecycle({ log, deadlineMs: stopDeadlineMs });
  let address = "";
  return {
    start: async (): Promise<void> => {
      const telemetry = await startTelemetry({
        service: "dispatch",
        version: "0.1.0",
        metricsHost: config.HERALD_DISPATCH_HOST,
        metricsPort: config.HERALD_DISPATCH_METRICS_PORT,
        otlpEndpoint: config.OTEL_EXPORTER_OTLP_ENDPOINT,
      });
      const mongo = connectMongo({
        url: config.HERALD_MONGO_URL,
        database: config.HERALD_DISPATCH_DATABASE,
        appName: "herald-dispatch",
        log,
      });
      let bus: Bus | undefined;
      let consuming: Consuming | undefined;
      const health = createHealth({
        bus: () => (bus !== undefined && busStatus(bus).connected) || "NATS is away",
        database: async () => (await mongo.ping()) || "the database is away",
        consumers: () => (consuming !== undefined && consumersReady(consuming)) || "not every durable is there",
      });
      const http = await startHealthServer({
        health,
        log,
        host: config.HERALD_DISPATCH_HOST,
        port: config.HERALD_DISPATCH_PORT,
      });
      address = http.address;

      bus = await connectBus({
        url: config.HERALD_NATS_URL,
        user: config.HERALD_NATS_USER,
        password: config.HERALD_NATS_PASSWORD,
        name: "herald-dispatch",
        log,
      });
      const connected = bus;
      const parts = assemble(config, { bus: connected, mongo, log, ...overrides });
      let stopping = false;
      // Every query names its index, so nothing begins before they are there.
      void mongo.prepare("indexes", parts.prepare).then(async () => {
        if (stopping) return;
        parts.begin();
        consuming = await consume(connected, parts.handlers);
      });

      lifecycle.onStop("readiness", health.shuttingDown);
      lifecycle.onStop("consumers", async () => {
        stopping = true;
        await consuming?.stop(drainMs);
      });
      lifecycle.onStop("parts", parts.stop);
      lifecycle.onStop("http", () => http.stop(1_000));
      lifecycle.onStop("bus", () => closeBus(connected));
      lifecycle.onStop("database", mongo.close);
      lifecycle.onStop("telemetry", telemetry.stop);
    },
    stop: (): Promise<boolean> => lifecycle.stop("asked to"),
    address: (): string => address,
  };
};

type Ground = Overrides & { readonly bus: Bus; readonly mongo: MongoHandle; readonly log: Logger };

/** Everything between the bus and the database, readable from the stores up to the handlers. */
const assemble = (config: DispatchConfig, ground: Ground) => {
  const { bus, mongo, log, now = () => new Date(), random = Math.random, sweepEveryMs = usualSweepMs } = ground;
  const { db } = mongo;

  const notifications = createNotificationStore(db);
  const deliveries = createDeliveryStore(db);
  const ledger = createLedgerReads(db);
  const credentials = createCredentialStore(db, config.HERALD_DISPATCH_MASTER_KEYS);
  const list = createDeliveryList(db, (platform, notificationId, deviceId) =>
    platform === "ios" ? apnsId(notificationId, deviceId) : undefined,
  );

  const outbox = createOutbox<OutboxEvent>({
    collections: [notificationCollection(db), deliveryCollection(db), credentialCollection(db)].map((collection) => ({
      collection: collection as never,
    })),
    publish: (event) => publishEvent(bus, event),
    log,
  });
  const flush = ({ _id, projectId }: NotificationDocument) =>
    outbox.flush(notificationCollection(db), { _id, projectId });
  const flushCredential = (projectId: string, provider: string) =>
    outbox.flush(credentialCollection(db), { _id: `${projectId}/${provider}` });

  const expand = createExpand(bus);
  const schedule = createSchedule(bus);
  const watch = createNotificationWatch(notifications, { size: watchedNotifications, now });
  const finisher = createFinisher({ notifications, ledger, flush, now });
  const pool = createProviderPool({
    credentials,
    connect: createConnectProvider({
      createTransport: (options) =>
        createHttp2Pool({
          ...options,
          connections: config.HERALD_DISPATCH_CONNECTIONS,
          requestTimeoutMs: config.HERALD_DISPATCH_REQUEST_TIMEOUT,
        }),
      now,
    }),
    inFlight: config.HERALD_DISPATCH_IN_FLIGHT,
    unproven: chunkSize,
    clients: config.HERALD_DISPATCH_CLIENTS,
    now,
    log,
  });
  const carryOut = createCarryOut({
    watch,
    pool,
    openTokens: createOpenTokens(config.HERALD_OPEN_KEYS),
    deliveries,
    credentials,
    finisher,
    schedule,
    publishEvent: (event) => publishEvent(bus, event),
    flushCredential,
    metrics: createMetrics(),
    now,
    random,
    log,
  });
  const sweeps = createSweeps({
    deliveries,
    notifications,
    ledger,
    carryOut,
    finisher,
    publishDue: createPublishDue(bus),
    everyMs: sweepEveryMs,
    now,
    log,
  });
  const records = createProviderRecords(openBucket(bus, "push_projects", ProvidersRecord), credentials);

  const gates = new Map(
    deliverDurables.map((durable) => [
      durable,
      createFairGate({ total: config.HERALD_DISPATCH_BATCHES, perKey: config.HERALD_DISPATCH_BATCHES_PER_PROJECT }),
    ]),
  );
  const gateOf = (lane: Lane, platform: Platform) => {
    const gate = gates.get(`dispatch-${lane}-${platform}`);
    if (!gate) throw new Error(`no gate for ${lane} ${platform}`);
    return gate;
  };
  const concurrency = config.HERALD_DISPATCH_BATCHES_IN_MEMORY;

  const find = createFindNotification(bus, notifications);
  const answerAll = () => [
    ...answerNotifications({ bus, find, notifications, deliveries, ledger, watch, sweeps, flush, now }),
    ...answerDeliveries({ bus, find, list: list.list }),
    ...answerProviders({
      bus,
      credentials,
      deliveries,
      records,
      check: (provider, settings) =>
        checkSettings(provider, settings, { customEndpoints: config.HERALD_DISPATCH_CUSTOM_ENDPOINTS, now: now() }),
      pool,
      sweeps,
      flush: flushCredential,
      now,
    }),
  ];

  let answering: Answering[] = [];

  return {
    handlers: [
      startNotification({
        notifications,
        watch,
        expand,
        wait: ({ _id, projectId, dueAt = now() }) =>
          schedule({
            subject: scheduleSubject(_id, 0),
            at: dueAt,
            data: { kind: "notification", projectId, key: _id, id: _id },
          }),
        flush,
        now,
      }),
      finishExpansion({ notifications, finisher }),
      ...[...gates].map(([durable, gate]) =>
        deliverBatch({ durable, concurrency, gate, watch, deliveries, carryOut, now }),
      ),
      wakeDue({ notifications, deliveries, watch, pool, carryOut, schedule, expand, gateOf, concurrency, now }),
      buryDead({ notifications, deliveries, carryOut, finisher, expand, now }),
      dropProject({ credentials, notifications, deliveries, records }),
    ],
    prepare: async () => {
      for (const store of [notifications, deliveries, credentials]) await store.ensureIndexes();
      const { moved, missing } = await credentials.rotate();
      if (moved > 0) log.info({ moved }, "credentials are under the first master key now");
      if (missing.length > 0) log.error({ missing }, "credentials are under master keys that are not configured");
    },
    begin: () => {
      answering = answerAll();
      outbox.start();
      sweeps.start();
    },
    stop: async () => {
      await Promise.all(answering.map((each) => each.stop()));
      await sweeps.stop();
      await pool.close();
      await outbox.stop();
    },
  };
};
