import { groupedPublish, groupedPublishEvent, handleRequest, openBucket } from "@herald/bus";
import {
  CountBacklog,
  type Lane,
  type OutboxEvent,
  type Platform,
  type Provider,
  ProvidersRecord,
  SendV1,
} from "@herald/contracts";
import { createHttp2Transport, createNegotiatedTransport } from "@herald/http2-client";
import { createFairGate, repeat } from "@herald/kit";
import { createErasureStore, createOutbox, startRetention } from "@herald/mongo";
import { createOpenTokens } from "@herald/payload";
import { eraseUser, type ServiceDefinition, type ServiceDeps, startErasurePasses } from "@herald/service";
import type { DispatchConfig } from "./config.ts";
import { createBacklog, sweepBacklogs } from "./delivery/backlog.ts";
import { createDeliverSends } from "./delivery/deliver-sends.ts";
import { createExpand } from "./delivery/expand.ts";
import { createFinisher } from "./delivery/finish.ts";
import { createNotificationCache } from "./delivery/notification-cache.ts";
import { createPipeline } from "./delivery/pipeline.ts";
import { createCheckWaiting, createResolveSend } from "./delivery/prepare.ts";
import { chunkSize } from "./delivery/push-devices.ts";
import { createSchedule } from "./delivery/schedule.ts";
import { createSmallSend } from "./delivery/small-send.ts";
import { unitsOfBatch } from "./domain/gate-units.ts";
import { completeExpansion } from "./handlers/complete-expansion.ts";
import { handleDeadLetters } from "./handlers/dead-letters.ts";
import { deleteProject } from "./handlers/delete-project.ts";
import { deliverBatch, deliverDurables } from "./handlers/deliver-batch.ts";
import { deliverDue } from "./handlers/deliver-due.ts";
import { deliverSendGroup, deliverSingleSend } from "./handlers/deliver-send-group.ts";
import { drainBacklog } from "./handlers/drain-backlog.ts";
import { startNotification } from "./handlers/start-notification.ts";
import { createExpandQueued, sweepExpansions } from "./jobs/expand-queued.ts";
import { createLiveMessages } from "./jobs/live-messages.ts";
import { createPublishDue } from "./jobs/publish-due.ts";
import { createRecoverLostWork, createResolveOne } from "./jobs/recover-lost-work.ts";
import { retentionRules } from "./jobs/retention.ts";
import { createSweeps } from "./jobs/sweeps.ts";
import { createMetrics } from "./metrics.ts";
import { apnsId } from "./providers/apns/apns-id.ts";
import { checkSettings } from "./providers/check-settings.ts";
import { createConnectProvider } from "./providers/connect-provider.ts";
import { createProviderPool } from "./providers/provider-pool.ts";
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
import { createCredentialStore, credentialCollection } from "./stores/credential-store.ts";
import { deliveryCollection } from "./stores/delivery-document.ts";
import { createDeliveryList, type ProviderIdOf } from "./stores/delivery-list.ts";
import { createDeliveryStore } from "./stores/delivery-store.ts";
import { createDeliveryTrace } from "./stores/delivery-trace.ts";
import { createDeliveryUsers } from "./stores/delivery-users.ts";
import { createUserEraser } from "./stores/erase-user.ts";
import { createExpansionQueue } from "./stores/expansion-queue.ts";
import { createLedgerReads } from "./stores/ledger-reads.ts";
import { createLostWork } from "./stores/lost-work.ts";
import { type NotificationState, notificationCollection, type OutboxCarrier } from "./stores/notification-document.ts";
import { createNotificationStore } from "./stores/notification-store.ts";
import { createSmallSendStore } from "./stores/small-send-store.ts";

/** Contents in memory: ten thousand usual ones, and more than are being sent at a time of the largest. */
const cachedBytes = 32 * 1_048_576;
/** A project's queues for single devices hold so many times what one for broadcasts does, and their batches a fraction of the bytes. */
const directInMemory = 16;
/** Sends to few devices each that are carried out at a time: each holds a few kilobytes, and most are done in milliseconds. */
const smallSendsAtOnce = 512;
/** What waits behind them in memory, a kilobyte each: a second or two of what is sent. The rest waits in its project's backlog. */
const smallSendsWaiting = 2_000;
const smallSendsInMemory = 16_000;
/** Sends beyond their project's share that are being stored at a time: more would hold up those that are sent. */
const smallSendsStored = 256;
/** Sends to many devices that are stored at a time: a few short waits each, for the database's disk and the broker's. */
const largeSends = 128;
/** What waits behind them in memory, within the bytes that the bus allows a consumer. */
const largeSendsWaiting = 16_000;
/** What the clock on the bus forgot waits this much longer. */
const usualSweepMs = 2_000;

/** Records that an older version wrote lack what gateways tell browsers; so long at most. */
const reconcileEveryMs = 60_000;

/** What a test chooses. */
export type Overrides = {
  readonly now?: () => Date;
  /** In [0, 1): the jitter of what is tried again. */
  readonly random?: () => number;
  readonly sweepEveryMs?: number;
  readonly retentionEveryMs?: number;
  /** Sends to few devices each that are delivered at a time, and how many of a project wait for that in memory. */
  readonly smallSends?: { readonly total: number; readonly waiting: number };
};

/** Everything between the bus and the database, readable from the stores up to the handlers. */
export const assemble = (config: DispatchConfig, ground: ServiceDeps & Overrides): ServiceDefinition => {
  const { bus, db, log, now = () => new Date(), random = Math.random } = ground;
  const { sweepEveryMs = usualSweepMs, retentionEveryMs = config.HERALD_RETENTION_INTERVAL } = ground;

  const notifications = createNotificationStore(db);
  const deliveries = createDeliveryStore(db);
  const sends = createSmallSendStore(db);
  const ledger = createLedgerReads(db);
  const credentials = createCredentialStore(db, config.HERALD_DISPATCH_MASTER_KEYS);
  const providerIdOf: ProviderIdOf = (platform, notificationId, deviceId) =>
    platform === "ios" ? apnsId(notificationId, deviceId) : undefined;
  const { list } = createDeliveryList(db, providerIdOf);
  const { trace } = createDeliveryTrace(db, providerIdOf);
  const { usersOf } = createDeliveryUsers(db);
  const erasures = createErasureStore(db);
  const erasing = { erasures, erase: createUserEraser(db, sends).erase, now };

  const publishEvent = groupedPublishEvent(() => bus);
  const outbox = createOutbox<OutboxEvent>({
    collections: [
      { collection: notificationCollection(db) },
      { collection: deliveryCollection(db) },
      { collection: credentialCollection(db) },
    ],
    publish: publishEvent,
    log,
  });
  const flush = ({ _id, projectId }: NotificationState) => outbox.flush(notificationCollection(db), { _id, projectId });
  const publishOutbox = (written: OutboxCarrier) => outbox.publish(notificationCollection(db), written);
  const flushCredential = (projectId: string, provider: Provider) =>
    outbox.flush(credentialCollection(db), { _id: `${projectId}/${provider}` });

  const queue = createExpansionQueue(db);
  const expand = createExpand(bus);
  const expandQueued = createExpandQueued({ queue, notifications, expand, now });
  const checkWaiting = createCheckWaiting(bus);
  const schedule = createSchedule(bus);
  const cache = createNotificationCache(notifications, { maxBytes: cachedBytes, now });
  const finisher = createFinisher({
    notifications,
    ledger,
    publishOutbox: (written) => outbox.publish(notificationCollection(db), written, { final: true }),
    now,
  });
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
  const pipeline = createPipeline({
    cache,
    pool,
    openTokens,
    deliveries,
    credentials,
    finisher,
    schedule,
    publish: publishEvent,
    publishOutbox: (row) => outbox.publish(deliveryCollection(db), row, { final: true }),
    flushCredential,
    metrics,
    now,
    random,
    log,
  });
  const publishDue = createPublishDue(bus);
  const publishSend = groupedPublish(() => bus, SendV1);
  const sendAsLarge = (send: SendV1) => publishSend(SendV1.schema.parse(send), send.notificationId);
  const startGate = createFairGate({ total: largeSends });
  const { smallSends = { total: smallSendsAtOnce, waiting: smallSendsWaiting } } = ground;
  const sendGate = createFairGate({
    total: smallSends.total,
    line: { perKey: smallSends.waiting, total: smallSendsInMemory },
  });
  const backlogGate = createFairGate({ total: smallSendsStored });
  const smallSend = createSmallSend({
    sends,
    deliveries,
    pipeline,
    checkWaiting,
    finisher,
    cache,
    publish: publishEvent,
    publishOutbox: (written) => outbox.publish(notificationCollection(db), written, { final: true }),
    flushRows: (projectId, ids) => outbox.flush(deliveryCollection(db), { _id: { $in: ids }, projectId }),
    now,
  });
  const recovery = createRecoverLostWork({
    live: createLiveMessages(bus),
    lost: createLostWork(db),
    notifications,
    queue,
    sends,
    deliveries,
    pipeline,
    expand,
    publishDue,
    publish: publishEvent,
    resolve: createResolveOne(bus),
    now,
    log,
  });
  const queued = createBacklogStore(db);
  const backlog = createBacklog({
    bus,
    store: queued,
    sends,
    smallSend,
    checkWaiting,
    release: recovery.release,
    gate: sendGate,
    now,
    log,
  });
  const deliverSends = createDeliverSends({
    resolve: createResolveSend(bus),
    gate: sendGate,
    backlogGate,
    backlog,
    sendAsLarge,
    sends,
    smallSend,
    now,
  });
  const everyMs = sweepEveryMs;
  const sweeps = createSweeps({
    deliveries,
    notifications,
    ledger,
    pipeline,
    finisher,
    recover: recovery.recover,
    publishDue,
    everyMs,
    now,
    log,
  });

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
  const records = createProviderRecords(openBucket(bus, "push_projects", ProvidersRecord), credentials);

  const answerAll = () => {
    const find = createFindNotification(bus, notifications, { keepMs: config.HERALD_DISPATCH_RETENTION, now });
    const sumsOf = createRecentSums(ledger, now);
    const customEndpoints = config.HERALD_DISPATCH_CUSTOM_ENDPOINTS;
    const check = (provider: Provider, settings: unknown, previousKeys: KeyRing | undefined) =>
      checkSettings(provider, settings, { customEndpoints, now: now() }, previousKeys);
    const changed = { credentials, deliveries, records, check, pool, sweeps, flush: flushCredential, now };
    return [
      ...handleNotificationRequests({ bus, find, notifications, deliveries, sumsOf, cache, sweeps, flush, now }),
      ...handleDeliveryRequests({ bus, find, list, trace, usersOf, sumsOf, now }),
      ...handleProviderRequests({ bus, ...changed }),
      handleTestPush({ bus, credentials, connect, openTokens, now, log }),
      ...handleVapidKeyRequests({ bus, credentials, records, pool, now }),
      ...handleReplayRequests({ bus, notifications, deliveries }),
      handleRequest(bus, CountBacklog, async ({ projectId, limit }) => ({
        queued: await queued.count(projectId, limit),
      })),
    ];
  };
  return {
    handlers: [
      // Groups wait at the gate, not here: a slow one takes no other's place.
      deliverSendGroup(deliverSends, smallSendsInMemory),
      deliverSingleSend(deliverSends, smallSendsInMemory),
      drainBacklog(backlog),
      startNotification({
        notifications,
        cache,
        expandQueued,
        schedule,
        publishOutbox,
        flush,
        gate: startGate,
        concurrency: largeSendsWaiting,
        now,
      }),
      completeExpansion({ notifications, cache, finisher, expandQueued, now }),
      ...[...gates].map(([durable, gate]) =>
        deliverBatch({
          durable,
          concurrency: durable.startsWith("dispatch-direct") ? concurrency * directInMemory : concurrency,
          gate,
          cache,
          deliveries,
          pipeline,
          checkWaiting,
          now,
        }),
      ),
      deliverDue({
        notifications,
        deliveries,
        cache,
        pool,
        pipeline,
        schedule,
        expandQueued,
        checkWaiting,
        gateOf,
        concurrency,
        now,
      }),
      handleDeadLetters({
        notifications,
        sends,
        deliveries,
        pipeline,
        finisher,
        queue,
        expandQueued,
        sendAsLarge,
        now,
      }),
      deleteProject({ credentials, notifications, deliveries, erasures, records }),
      eraseUser("dispatch-erase-user", erasing),
    ],
    /** What the database must have before anything begins. Repeatable. */
    prepare: async () => {
      for (const store of [notifications, deliveries, credentials, erasures]) await store.ensureIndexes();
      const { moved, missing } = await credentials.rotate();
      if (moved > 0) log.info({ moved }, "credentials are under the first master key now");
      if (missing.length > 0) log.error({ missing }, "credentials are under master keys that are not configured");
    },
    begin: () => {
      const answering = answerAll();
      outbox.start();
      sweeps.start();
      const rules = retentionRules({ notifications, deliveries }, config.HERALD_DISPATCH_RETENTION);
      const working = [
        startErasurePasses(erasing, log),
        sweepExpansions({ queue, expandQueued }, log),
        sweepBacklogs({ store: queued, backlog }, log),
        startRetention({ db, rules, everyMs: retentionEveryMs, now, log }),
        repeat("compare what gateways know", reconcileEveryMs, log, async (signal) => {
          const mended = await records.reconcile(signal);
          if (mended > 0) log.warn({ mended }, "records of projects' providers were behind the database");
        }),
      ];
      return async () => {
        await Promise.all(answering.map((each) => each.stop()));
        await sweeps.stop();
        await Promise.all(working.map((each) => each.stop()));
        await pool.close();
        await outbox.stop();
      };
    },
    /** Whoever waits for a turn does not get one any more. */
    closeGates: () => {
      for (const gate of [...gates.values(), sendGate, backlogGate, startGate]) gate.close();
    },
  };
};
