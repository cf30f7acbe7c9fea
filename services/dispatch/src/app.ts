import { groupedPublishEvent, handleRequest, openBucket } from "@herald/bus";
import { CountBacklog, type Lane, type Platform, type Provider, ProvidersRecord } from "@herald/contracts";
import { createHttp2Transport, createNegotiatedTransport } from "@herald/http2-client";
import { createFairGate, repeat } from "@herald/kit";
import { createErasureStore, startRetention } from "@herald/mongo";
import { createOpenTokens } from "@herald/payload";
import {
  createService,
  eraseUser,
  type Service,
  type ServiceDefinition,
  type ServiceDeps,
  startErasurePasses,
} from "@herald/service";
import { type DispatchConfig, drainMs } from "./config.ts";
import { sweepBacklogs } from "./delivery/backlog.ts";
import { createDelivery } from "./delivery/create-delivery.ts";
import { chunkSize } from "./delivery/push-devices.ts";
import { unitsOfBatch } from "./domain/gate-units.ts";
import { completeExpansion } from "./handlers/complete-expansion.ts";
import { handleDeadLetters } from "./handlers/dead-letters.ts";
import { deleteProject } from "./handlers/delete-project.ts";
import { deliverBatch, deliverDurables } from "./handlers/deliver-batch.ts";
import { deliverDue } from "./handlers/deliver-due.ts";
import { deliverSendGroup, deliverSingleSend } from "./handlers/deliver-send-group.ts";
import { drainBacklog } from "./handlers/drain-backlog.ts";
import { startNotification } from "./handlers/start-notification.ts";
import { sweepExpansions } from "./jobs/expand-queued.ts";
import { retentionRules } from "./jobs/retention.ts";
import { createSweeps } from "./jobs/sweeps.ts";
import { createMetrics } from "./metrics.ts";
import { apnsId } from "./providers/apns/apns-id.ts";
import { checkSettings } from "./providers/check-settings.ts";
import { createConnectProvider } from "./providers/connect-provider.ts";
import { createProviderPool } from "./providers/provider-pool.ts";
import { listTroubles } from "./providers/provider-troubles.ts";
import type { KeyRing } from "./providers/webpush/key-ring.ts";
import { handleDeliveryRequests } from "./requests/deliveries.ts";
import { createFindNotification } from "./requests/find-notification.ts";
import { handleNotificationRequests } from "./requests/notifications.ts";
import { createProviderRecords } from "./requests/provider-records.ts";
import { handleProviderRequests } from "./requests/providers.ts";
import { createRecentSums } from "./requests/recent-sums.ts";
import { handleReplayRequests } from "./requests/replays.ts";
import { handleTestPush } from "./requests/test-provider.ts";
import { handleVapidKeyRequests } from "./requests/vapid-keys.ts";
import { createBacklogStore } from "./stores/backlog-store.ts";
import { createCredentialStore } from "./stores/credential-store.ts";
import { createDeliveryExport } from "./stores/delivery-export.ts";
import { createDeliveryList, type ProviderIdOf } from "./stores/delivery-list.ts";
import { createDeliveryStore } from "./stores/delivery-store.ts";
import { createDeliveryTrace } from "./stores/delivery-trace.ts";
import { createDeliveryUsers } from "./stores/delivery-users.ts";
import { createDeviceTimeline } from "./stores/device-timeline.ts";
import { createDispatchOutbox } from "./stores/dispatch-outbox.ts";
import { createUserEraser } from "./stores/erase-user.ts";
import { createExpansionQueue } from "./stores/expansion-queue.ts";
import { createLedgerReads } from "./stores/ledger-reads.ts";
import { createLostWork } from "./stores/lost-work.ts";
import { createNotificationStore } from "./stores/notification-store.ts";
import { createSmallSendStore } from "./stores/small-send-store.ts";

/** A project's queues for single devices hold so many times what one for broadcasts does, and their batches a fraction of the bytes. */
const directInMemory = 16;
/** What waits of sends to few devices in memory, of all projects. */
const smallSendsInMemory = 16_000;
/** Sends beyond their project's share that are being stored at a time: more would hold up those that are sent. */
const smallSendsStored = 256;
/** Sends to many devices that are stored at a time: a few short waits each, for the database's disk and the broker's. */
const largeSends = 128;
/** What waits behind them in memory, within the bytes that the bus allows a consumer. */
const largeSendsWaiting = 16_000;
/** Records that an older version wrote lack what gateways tell browsers; so long at most. */
const reconcileEveryMs = 60_000;

const defaults = {
  now: () => new Date(),
  /** In [0, 1): the jitter of what is tried again. */
  random: Math.random,
  /** What the clock on the bus forgot waits this much longer. */
  sweepEveryMs: 2_000,
  /**
   * Sends to few devices each that are delivered at a time: each holds a few kilobytes, and most are done in milliseconds. Of a
   * project so many wait behind them, about five seconds of what is sent, within the bytes that the bus allows a consumer. The rest waits
   * in its backlog, which costs the database two more updates a send.
   */
  smallSends: { total: 512, waiting: 4_000 },
};

/** What a test may replace. */
export type Overrides = Partial<typeof defaults & { retentionEveryMs: number }>;

const assemble = (
  config: DispatchConfig,
  { bus, db, log, ...overrides }: ServiceDeps & Overrides,
): ServiceDefinition => {
  const { now, random, sweepEveryMs, smallSends } = { ...defaults, ...overrides };
  const { retentionEveryMs = config.HERALD_RETENTION_INTERVAL } = overrides;

  const providerIdOf: ProviderIdOf = (provider, notificationId, deviceId) =>
    provider === "apns" ? apnsId(notificationId, deviceId) : undefined;
  const stores = {
    notifications: createNotificationStore(db),
    deliveries: createDeliveryStore(db),
    sends: createSmallSendStore(db),
    ledger: createLedgerReads(db),
    credentials: createCredentialStore(db, config.HERALD_DISPATCH_MASTER_KEYS),
    queue: createExpansionQueue(db),
    queued: createBacklogStore(db),
    lost: createLostWork(db),
    erasures: createErasureStore(db),
    list: createDeliveryList(db, providerIdOf).list,
    exportDeliveries: createDeliveryExport(db, providerIdOf).page,
    trace: createDeliveryTrace(db, providerIdOf).trace,
    timeline: createDeviceTimeline(db, providerIdOf).timeline,
    usersOf: createDeliveryUsers(db).usersOf,
  };
  const { notifications, deliveries, sends, ledger, credentials, erasures, queue, queued } = stores;
  const erasing = { erasures, erase: createUserEraser(db, sends).erase, now };
  const publish = groupedPublishEvent(() => bus);
  const outbox = createDispatchOutbox(db, { publish, log });

  const metrics = createMetrics();
  const limits = {
    connections: config.HERALD_DISPATCH_CONNECTIONS,
    requestTimeoutMs: config.HERALD_DISPATCH_REQUEST_TIMEOUT,
  };
  const connect = createConnectProvider({
    createTransport: (options) => createHttp2Transport({ ...options, ...limits }),
    createWebPushTransport: (options) => createNegotiatedTransport({ ...options, ...limits }),
    anyPushService: config.HERALD_DISPATCH_WEBPUSH_ANY_HOST,
    now,
  });
  const pool = createProviderPool({
    credentials,
    connect,
    inFlight: config.HERALD_DISPATCH_IN_FLIGHT,
    unproven: chunkSize,
    clients: config.HERALD_DISPATCH_CLIENTS,
    metrics,
    now,
    log,
  });
  const openTokens = createOpenTokens(config.HERALD_OPEN_KEYS);
  const records = createProviderRecords(openBucket(bus, "push_projects", ProvidersRecord), credentials);

  const sendGate = createFairGate({
    total: smallSends.total,
    line: { perKey: smallSends.waiting, total: smallSendsInMemory },
  });
  const backlogGate = createFairGate({ total: smallSendsStored });
  const startGate = createFairGate({ total: largeSends });
  const shares = {
    total: config.HERALD_DISPATCH_BATCHES * unitsOfBatch,
    perKey: config.HERALD_DISPATCH_BATCHES_PER_PROJECT * unitsOfBatch,
  };
  const gates = new Map(deliverDurables.map((durable) => [durable, createFairGate(shares)]));
  const gateOf = (lane: Lane, platform: Platform) => {
    const gate = gates.get(`dispatch-${lane}-${platform}`);
    if (!gate) throw new Error(`no gate for ${lane} ${platform}`);
    return gate;
  };
  const concurrency = config.HERALD_DISPATCH_BATCHES_IN_MEMORY;

  const shared = { ...stores, bus, outbox, pool, openTokens, publish, metrics, now, random, log };
  const delivery = createDelivery({ ...shared, gate: sendGate, backlogGate });
  const sweeps = createSweeps({ ...shared, ...delivery, everyMs: sweepEveryMs });
  const deps = {
    ...shared,
    ...delivery,
    sweeps,
    connect,
    records,
    find: createFindNotification(bus, notifications, { keepMs: config.HERALD_DISPATCH_RETENTION, now }),
    sumsOf: createRecentSums(ledger, now),
    check: (provider: Provider, settings: unknown, previousKeys: KeyRing | undefined) =>
      checkSettings(
        provider,
        settings,
        { customEndpoints: config.HERALD_DISPATCH_CUSTOM_ENDPOINTS, now: now() },
        previousKeys,
      ),
    publishNotification: outbox.publishNotification,
    flushNotification: outbox.flushNotification,
    flushCredential: outbox.flushCredential,
  };

  return {
    prepare: async () => {
      for (const store of [notifications, deliveries, credentials, erasures]) await store.ensureIndexes();
      const { moved, missing } = await credentials.rotate();
      if (moved > 0) log.info({ moved }, "credentials are under the first master key now");
      if (missing.length > 0) log.error({ missing }, "credentials are under master keys that are not configured");
    },
    handlers: [
      // Groups wait at the gate, not here: a slow one takes no other's place.
      deliverSendGroup(delivery.deliverSends, smallSendsInMemory),
      deliverSingleSend(delivery.deliverSends, smallSendsInMemory),
      drainBacklog(delivery.backlog),
      startNotification({ ...deps, gate: startGate, concurrency: largeSendsWaiting }),
      completeExpansion(deps),
      ...[...gates].map(([durable, gate]) => {
        const inMemory = durable.startsWith("dispatch-direct") ? concurrency * directInMemory : concurrency;
        return deliverBatch({ ...deps, durable, concurrency: inMemory, gate });
      }),
      deliverDue({ ...deps, gateOf, concurrency }),
      handleDeadLetters(deps),
      deleteProject(deps),
      eraseUser("dispatch-erase-user", erasing),
    ],
    begin: () => {
      const listeners = [
        ...handleNotificationRequests(deps),
        ...handleDeliveryRequests(deps),
        ...handleProviderRequests(deps),
        handleTestPush(deps),
        ...handleVapidKeyRequests(deps),
        ...handleReplayRequests(deps),
        handleRequest(bus, CountBacklog, async ({ projectId, limit }) => ({
          queued: await queued.count(projectId, limit),
        })),
      ];
      outbox.start();
      const rules = retentionRules(stores, config.HERALD_DISPATCH_RETENTION);
      const jobs = [
        sweeps.start(),
        startErasurePasses(erasing, log),
        sweepExpansions({ queue, expandQueued: delivery.expandQueued }, log),
        sweepBacklogs({ store: queued, backlog: delivery.backlog }, log),
        startRetention({ db, rules, everyMs: retentionEveryMs, now, log }),
        repeat("compare what gateways know", reconcileEveryMs, log, async (signal) => {
          const mended = await records.reconcile(signal);
          if (mended > 0) log.warn({ mended }, "records of projects' providers were behind the database");
        }),
      ];
      return async () => {
        await Promise.all(listeners.map((each) => each.stop()));
        await Promise.all(jobs.map((each) => each.stop()));
        await pool.close();
        await outbox.stop();
      };
    },
    status: listTroubles({ credentials, now }),
    /** Waiting work gets no more turns. */
    closeGates: () => {
      for (const gate of [...gates.values(), sendGate, backlogGate, startGate]) gate.close();
    },
  };
};

/** The service: configuration in, start and stop out. */
export const createApp = (config: DispatchConfig, overrides: Overrides = {}): Service =>
  createService({
    name: "dispatch",
    config,
    host: config.HERALD_DISPATCH_HOST,
    port: config.HERALD_DISPATCH_PORT,
    metricsPort: config.HERALD_DISPATCH_METRICS_PORT,
    database: config.HERALD_DISPATCH_DATABASE,
    drainMs,
    assemble: (deps) => assemble(config, { ...deps, ...overrides }),
  });
