import { groupedPublishEvents, handleRequest, openBucket } from "@herald/bus";
import {
  activityRequests,
  backlogRequests,
  erasureRequests,
  idTime,
  type Lane,
  type Platform,
  ProvidersRecord,
  targetKey,
} from "@herald/contracts";
import { createHttp2Transport, createNegotiatedTransport, type TransportOptions } from "@herald/http2-client";
import { createFairGate, createOutboundProxy, runEvery } from "@herald/kit";
import { lastRestore, retentionEveryMs, startRetention } from "@herald/mongo";
import { createOpenTokens } from "@herald/payload";
import {
  createService,
  deleteProject,
  eraseUser,
  type Service,
  type ServiceDefinition,
  type ServiceDeps,
  startErasurePasses,
} from "@herald/service";
import { type DispatchConfig, drainMs } from "./config.ts";
import { listBacklogs, sweepBacklogs } from "./delivery/backlog.ts";
import { createDelivery } from "./delivery/create-delivery.ts";
import { createEscalateDue } from "./delivery/escalations.ts";
import { sweepExpansions } from "./delivery/expand.ts";
import { chunkSize } from "./delivery/push-devices.ts";
import type { Deps } from "./deps.ts";
import { unitsOfBatch } from "./domain/batch.ts";
import type { Erased } from "./domain/erase-targets.ts";
import { handleDeadLetters } from "./handlers/dead-letters.ts";
import { deliverBatch, deliverDue, deliverDurables } from "./handlers/deliver-batch.ts";
import { createRemoveProject } from "./handlers/remove-project.ts";
import {
  completeExpansion,
  deliverSmallSends,
  drainBacklog,
  joinActivity,
  startNotification,
} from "./handlers/sends.ts";
import { createSweeps, retentionRules } from "./jobs/sweeps.ts";
import { createMetrics } from "./metrics.ts";
import { watchRules } from "./project-rules.ts";
import { createConnectProvider } from "./providers/connect-provider.ts";
import { createProviderPool } from "./providers/provider-pool.ts";
import { listProviderProblems } from "./providers/provider-problems.ts";
import { isKnownPushService } from "./providers/webpush/client.ts";
import { handleChangeRequests } from "./requests/change-notification.ts";
import { handleDecisions } from "./requests/decide-notification.ts";
import { handleDeliveryRequests, handleReplayRequests } from "./requests/deliveries.ts";
import { createFindNotification, createRecentSums, handleNotificationRequests } from "./requests/notifications.ts";
import { handleNotificationPauses } from "./requests/pause-notification.ts";
import { createProviderRecords, handleProviderRequests, handleVapidKeyRequests } from "./requests/providers.ts";
import { handleRecipientRequests } from "./requests/recipients.ts";
import { handleTestPush } from "./requests/test-provider.ts";
import { createUserEraser } from "./stores/erase-user.ts";
import { createDispatchOutbox, createStores } from "./stores/stores.ts";

/**
 * The part of the batches that one project may have: while some are sent or wait for a slow provider, others start or write their outcomes.
 * Half of all, so that another project starts at once.
 */
const projectShare = 0.5;
/** Batches of one lane and platform in memory, for each that is sent: enough for eight projects at their limit. */
const inMemoryPerBatch = 4;
/** Connections of one project to one provider. Apple reports gains up to about sixteen, but one thread serves them all. */
const connectionsOfProvider = 4;
/** Clients of projects that stay open. Each holds its connections and about 1 MB. */
const maxClients = 200;
/** The direct lane keeps this many times more batches in memory than the broadcast lane: its batches are a fraction of the size. */
const directInMemory = 16;
/** Messages of small sends in memory. What waits is limited by its bytes, so this only bounds the number of tiny messages. */
const sendMessagesInMemory = 32_000;
/** Large sends that are stored at a time. Each waits shortly for the disks of the database and the broker. */
const largeSends = 128;
/** Large sends that wait in memory to be stored, within the bytes that the bus allows a consumer. */
const largeSendsWaiting = 16_000;
/** Deletions of projects at a time. They take long, and no caller waits for them. */
const projectDeletions = 2;
/** Gateways lack the providers of a project whose record was lost, until it is repaired after at most this time. */
const reconcileEveryMs = 60_000;

const defaults = {
  now: () => new Date(),
  /** In [0, 1): the jitter of retries. */
  random: Math.random,
  /** Work that the broker's clock missed waits this much longer at most. */
  sweepEveryMs: 2_000,
  /**
   * `total`: small sends that are delivered at a time; each holds a few kilobytes, and most end within milliseconds. `waitingBytes`: the
   * messages of sends that wait in memory, less than the bus allows a consumer, so that it always gets more. A project alone may fill
   * three quarters, six to ten thousand sends. The rest waits in the project's backlog, which costs the database two more updates per send.
   */
  smallSends: { total: 512, waitingBytes: 6 * 1_048_576 },
  retentionEveryMs,
};

/** Values that a test may replace. */
export type Overrides = Partial<typeof defaults>;

const assemble = (
  config: DispatchConfig,
  { bus, db, log, ...overrides }: ServiceDeps & Overrides,
): ServiceDefinition => {
  const { now, random, sweepEveryMs, smallSends, retentionEveryMs } = { ...defaults, ...overrides };

  const stores = createStores(db, config.HERALD_DISPATCH_MASTER_KEYS);
  const { notifications, deliveries, sends, ledger, credentials, erasures, sendGroups, recipients, caps } = stores;
  const eraser = createUserEraser(db, sends, recipients);
  const erase = async (erased: Erased): Promise<void> => {
    // First: what leaves the backlog meanwhile is found among the notifications.
    await sendGroups.erase(erased);
    await recipients.erase(erased);
    if (!erased.devices) await caps.erase(erased, now());
    await eraser.erase(erased);
  };
  const publish = groupedPublishEvents(() => bus);
  const outbox = createDispatchOutbox(db, { publish, log });

  const metrics = createMetrics();
  const limits = {
    connections: connectionsOfProvider,
    requestTimeoutMs: config.HERALD_DISPATCH_REQUEST_TIMEOUT,
  };
  const proxy = createOutboundProxy(config);
  /** Names of the browsers' push services are no stranger's, and many networks with a proxy cannot resolve them. */
  const dialTo = ({ origin, lookup }: TransportOptions) =>
    proxy?.dialTo(new URL(origin), isKnownPushService(origin) ? undefined : lookup);
  const connect = createConnectProvider({
    createTransport: (options) => createHttp2Transport({ ...options, ...limits, dial: dialTo(options) }),
    createWebPushTransport: (options) => createNegotiatedTransport({ ...options, ...limits, dial: dialTo(options) }),
    anyPushService: config.HERALD_DISPATCH_WEBPUSH_ANY_HOST,
    now,
  });
  const pool = createProviderPool({
    credentials,
    connect,
    inFlight: config.HERALD_DISPATCH_IN_FLIGHT,
    unproven: chunkSize,
    clients: maxClients,
    metrics,
    now,
    log,
  });
  const openTokens = createOpenTokens(config.HERALD_OPEN_KEYS);
  const rules = watchRules(bus, (scope) => void delivery.resumeSends.onResumed(scope));
  const records = createProviderRecords(openBucket(bus, "push_providers", ProvidersRecord), credentials);
  const sendGate = createFairGate({ total: smallSends.total, line: { total: smallSends.waitingBytes } });
  const startGate = createFairGate({ total: largeSends });
  const shares = {
    total: config.HERALD_DISPATCH_BATCHES * unitsOfBatch,
    perKey: Math.ceil(config.HERALD_DISPATCH_BATCHES * projectShare) * unitsOfBatch,
  };
  const gates = new Map(deliverDurables.map((durable) => [durable, createFairGate(shares)]));
  const gateOf = (lane: Lane, platform: Platform) => {
    const gate = gates.get(`dispatch-${lane}-${platform}`);
    if (!gate) throw new Error(`no gate for ${lane} ${platform}`);
    return gate;
  };
  const concurrency = config.HERALD_DISPATCH_BATCHES * inMemoryPerBatch;

  let restoredAt: Date | undefined;
  const isRestored: Deps["isRestored"] = (id) => restoredAt !== undefined && idTime(id) <= restoredAt;
  const shared = {
    ...stores,
    isRestored,
    bus,
    outbox,
    pool,
    connect,
    rules,
    openTokens,
    publish,
    metrics,
    now,
    random,
    log,
  };
  const delivery = createDelivery({
    ...{ ...shared, gate: sendGate, places: smallSends.total },
    sweepDue: () => sweeps.sweepDue(),
  });
  const { channels } = delivery;
  const removeProject = createRemoveProject({ ...stores, records, channels, now });
  const erasing = { erasures, erase, removeProject, now };
  const sweeps = createSweeps({ ...shared, ...delivery, everyMs: sweepEveryMs });
  const deps = {
    ...shared,
    ...delivery,
    sweeps,
    records,
    find: createFindNotification(bus, stores, { keepMs: config.HERALD_DISPATCH_RETENTION, now }),
    sumsOf: createRecentSums(ledger, now),
    customEndpoints: config.HERALD_DISPATCH_CUSTOM_ENDPOINTS,
  };

  const problems = listProviderProblems({ credentials, now });
  const backlogs = listBacklogs({ sendGroups, metrics, now });

  return {
    prepare: async () => {
      for (const store of [notifications, deliveries, recipients, sendGroups, credentials, erasures])
        await store.ensureIndexes();
      await credentials.rotate(log);
      restoredAt = await lastRestore(db);
    },
    handlers: [
      // Groups wait at the gate, not in the consumer, so a slow group does not block others.
      ...deliverSmallSends(delivery.deliverSends, sendMessagesInMemory),
      drainBacklog(delivery.backlog),
      startNotification({ ...deps, gate: startGate, concurrency: largeSendsWaiting }),
      completeExpansion(deps),
      joinActivity(deps),
      ...[...gates].map(([durable, gate]) => {
        const inMemory = durable.startsWith("dispatch-direct") ? concurrency * directInMemory : concurrency;
        return deliverBatch({ ...deps, durable, concurrency: inMemory, gate });
      }),
      deliverDue({ ...deps, gateOf, concurrency }),
      handleDeadLetters(deps),
      deleteProject("dispatch-delete-project", projectDeletions, erasing),
      eraseUser("dispatch-erase-user", erasing),
    ],
    begin: () => {
      const listeners = [
        ...handleNotificationRequests(deps),
        ...handleChangeRequests(deps),
        ...handleNotificationPauses(deps),
        ...handleDecisions(deps),
        handleRequest(bus, activityRequests.channel, async ({ projectId, activityId: id, ...device }) => {
          const [channel] = (await channels.of({ projectId, id }, [device])).values();
          return channel === undefined ? {} : { id: channel };
        }),
        ...handleDeliveryRequests(deps),
        ...handleRecipientRequests(deps),
        ...handleProviderRequests(deps),
        handleTestPush(deps),
        ...handleVapidKeyRequests(deps),
        ...handleReplayRequests(deps),
        handleRequest(bus, erasureRequests.eraseDevices, async ({ projectId, key, at, devices }) => {
          const ids = devices.map(({ id }) => id);
          const tokens = devices.map(({ token }) => targetKey(projectId, `token:${token}`));
          await erasures.put({ projectId, key, at: new Date(at), devices: ids, tokens }, now());
          return {};
        }),
        handleRequest(bus, backlogRequests.count, async ({ projectId, limit }) => ({
          queued: (await sendGroups.count(projectId, limit)) + sendGate.waiting(projectId),
        })),
      ];
      outbox.start();
      const retention = retentionRules(stores, config.HERALD_DISPATCH_RETENTION);
      const jobs = [
        sweeps.start(),
        runEvery("publish what was not opened", sweepEveryMs, log, createEscalateDue(deps)),
        startErasurePasses(erasing, log),
        sweepExpansions(deps),
        sweepBacklogs(deps),
        ...delivery.resumeSends.start(),
        startRetention({ db, rules: retention, everyMs: retentionEveryMs, now, log }),
        runEvery("compare what gateways know", reconcileEveryMs, log, async (signal) => {
          const mended = await records.reconcile(signal);
          if (mended > 0) log.warn({ mended }, "records of projects' providers were behind the database");
        }),
      ];
      return [listeners, jobs, [{ stop: pool.close }, rules], [outbox]];
    },
    status: async () => ({ ...(await problems()), ...(await backlogs()) }),
    /** Waiting work is not started any more. */
    closeGates: () => {
      for (const gate of [...gates.values(), sendGate, startGate]) gate.close();
    },
  };
};

/** The service: configuration in, start and stop out. */
export const createApp = (config: DispatchConfig, overrides: Overrides = {}): Service =>
  createService({
    name: "dispatch",
    config,
    drainMs,
    assemble: (deps) => assemble(config, { ...deps, ...overrides }),
  });
