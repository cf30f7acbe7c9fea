import { groupedPublishEvent, openBucket, publishEvents } from "@herald/bus";
import {
  OperatorRecord,
  type OutboxEvent,
  ProjectRecord,
  ProvidersRecord,
  projectProvidersKey,
  TokenRecord,
} from "@herald/contracts";
import { type Logger, repeat } from "@herald/kit";
import { createCounts, createErasureStore, createOutbox, startRetention } from "@herald/mongo";
import { createService, type Service, type ServiceDefinition, type ServiceDeps } from "@herald/service";
import type { RegistryConfig } from "./config.ts";
import type { Deps } from "./deps.ts";
import { expand } from "./handlers/expand.ts";
import { recordAudit } from "./handlers/record-audit.ts";
import { recordOpens } from "./handlers/record-opens.ts";
import { retireDevice } from "./handlers/retire-device.ts";
import { createDeviceQuota } from "./identity/device-quota.ts";
import { createVerifyUserToken } from "./identity/verify-user-token.ts";
import { applyImportChunk } from "./imports/apply-import-chunk.ts";
import { handleImportRequests } from "./imports/import-requests.ts";
import { removeDeleted } from "./jobs/remove-deleted.ts";
import { createOperatorReplication } from "./jobs/replicate-operators.ts";
import { createProjectReplication } from "./jobs/replicate-projects.ts";
import { retireStaleDevices } from "./jobs/retire-stale-devices.ts";
import { handleAudienceRequests } from "./requests/audience.ts";
import { handleAuditRequests } from "./requests/audit.ts";
import { handleDeviceRequests } from "./requests/devices.ts";
import { handleIdentityKeyRequests } from "./requests/identity-keys.ts";
import { createKeyedMutex } from "./requests/keyed-mutex.ts";
import { handleOperatorRequests } from "./requests/operators.ts";
import { handleProjectRequests } from "./requests/projects.ts";
import { handleTopicRequests } from "./requests/topics.ts";
import { handleUserRequests } from "./requests/users.ts";
import { createAudienceStore } from "./stores/audience-store.ts";
import { createAuditStore } from "./stores/audit-store.ts";
import { createDeviceStore, deviceCollection } from "./stores/device-store.ts";
import { createExpansionStore } from "./stores/expansion-store.ts";
import { createImportStore } from "./stores/import-store.ts";
import { createOperatorStore } from "./stores/operator-store.ts";
import { createPendingEvents } from "./stores/pending-events.ts";
import { createProjectStore, projectCollection } from "./stores/project-store.ts";
import { createPublishQueue } from "./stores/publish-queue.ts";
import { createTopicStore, topicCollection } from "./stores/topic-store.ts";

/** The greater part of a stop: pages in progress are published first. */
const drainMs = 20_000;
/** A tombstone is removed with its event, within seconds. After a crash between the two only retention finds it. */
const tombstoneMs = 86_400_000;

/** Reports of imports, and what an unfinished upload left. */
const importMs = 30 * 86_400_000;

const defaults = {
  now: () => new Date(),
  /** Deletions that a crash interrupted continue within this time. */
  removeEveryMs: 5_000,
  /** A deleted project is removed after this time: no request that began before the deletion takes longer. */
  lingerMs: 60_000,
  /** Entries that a crash left stale are repaired within this time. */
  reconcileEveryMs: 60_000,
  /** Events of new devices that a crash left are published within this time. */
  pendingEveryMs: 2_000,
  /** Devices are retired within this time after they became stale, which is counted in days. */
  staleEveryMs: 3_600_000,
  /** Deliveries of a chunk of an import until its lines are refused: about ten minutes, as the pauses between them grow. */
  maxChunkTries: 20,
};

/** What a test may replace. */
type Overrides = Partial<typeof defaults>;

const assemble = (
  config: RegistryConfig,
  { bus, db, log, ...overrides }: ServiceDeps & Overrides,
): ServiceDefinition => {
  const { now, removeEveryMs, lingerMs, reconcileEveryMs, pendingEveryMs, staleEveryMs, maxChunkTries } = {
    ...defaults,
    ...overrides,
  };
  const masterKeys = config.HERALD_REGISTRY_MASTER_KEYS;
  const auditMs = config.HERALD_REGISTRY_AUDIT_RETENTION;
  const collections = {
    projects: projectCollection(db),
    topics: topicCollection(db),
    devices: deviceCollection(db),
  };
  const publish = groupedPublishEvent(() => bus);
  const outbox = createOutbox<OutboxEvent>({
    collections: [
      { collection: collections.projects },
      { collection: collections.topics, tombstone: "sweptAt" },
      { collection: collections.devices, tombstone: "deletedAt" },
    ],
    publish,
    log,
  });

  const counts = createCounts();
  const projects = createProjectStore(db, counts, now);
  const operators = createOperatorStore(db, counts);
  const audit = createAuditStore(db, masterKeys);
  const topics = createTopicStore(db, counts);
  const pending = createPendingEvents(db, collections.devices, {
    publish,
    publishMany: (events) => publishEvents(bus, events),
    now,
    log,
  });
  const devices = createDeviceStore(db, counts, pending);
  const expansions = createExpansionStore(db);
  const imports = createImportStore(db, counts);
  const erasures = createErasureStore(db);
  const publishQueue = createPublishQueue(outbox, collections);
  const replication = createProjectReplication({
    projects,
    tokens: openBucket(bus, "push_tokens", TokenRecord),
    settings: openBucket(bus, "push_projects", ProjectRecord),
  });
  const operatorReplication = createOperatorReplication(operators, openBucket(bus, "push_operators", OperatorRecord));
  const providers = openBucket(bus, "push_projects", ProvidersRecord);
  const deps: Deps = {
    bus,
    projects,
    operators,
    audit,
    topics,
    devices,
    audience: createAudienceStore(db),
    expansions,
    imports,
    erasures,
    publishQueue,
    publish,
    replication,
    operatorReplication,
    keyedMutex: createKeyedMutex(),
    verifyUserToken: createVerifyUserToken(projects, masterKeys, now),
    deviceQuota: createDeviceQuota({ max: config.HERALD_REGISTRY_QUOTA_DEVICES, countUpTo: devices.countUpTo, now }),
    vapidKeys: async (projectId) => (await providers.get(projectProvidersKey(projectId)))?.value.vapidKeys,
    masterKeys,
    now,
  };

  return {
    prepare: async () => {
      for (const store of [projects, operators, audit, topics, devices, pending, expansions, imports, erasures])
        await store.ensureIndexes();
      await projects.rewrapSecrets(masterKeys, log);
      const unprotected = await projects.countUnprotected();
      if (unprotected > 0)
        log.warn(
          { projects: unprotected },
          "projects without protected_metadata: their clients may claim any user_id in metadata",
        );
    },
    handlers: [
      expand(deps),
      retireDevice(deps),
      recordOpens(deps),
      applyImportChunk(deps, { maxTries: maxChunkTries, log }),
      recordAudit(audit, log),
    ],
    begin: () => {
      const listeners = [
        ...handleProjectRequests(deps),
        ...handleOperatorRequests(deps),
        ...handleAuditRequests(deps),
        ...handleIdentityKeyRequests(deps),
        ...handleUserRequests(deps),
        ...handleDeviceRequests(deps),
        ...handleImportRequests(deps),
        ...handleTopicRequests(deps),
        ...handleAudienceRequests(deps),
      ];
      outbox.start();
      const rules = [
        { name: "tombstones", keepMs: tombstoneMs, removeBatch: devices.removeTombstones },
        { name: "imports", keepMs: importMs, removeBatch: imports.removeOld },
        // The last one: it fails when rows were tampered with.
        ...(auditMs === undefined ? [] : [{ name: "auditRows", keepMs: auditMs, removeBatch: audit.removeOld }]),
      ];
      const jobs = [
        startRetention({ db, rules, everyMs: config.HERALD_RETENTION_INTERVAL, now, log }),
        repeat("continue deletions", removeEveryMs, log, (signal) => removeDeleted(deps, lingerMs, signal)),
        repeat("retire stale devices", staleEveryMs, log, async (signal) => {
          const retired = await retireStaleDevices(deps, signal);
          if (retired > 0) log.info({ devices: retired }, "deactivated stale devices");
        }),
        repeat("publish events of new devices", pendingEveryMs, log, pending.sweep),
        repeat("reconcile projects, tokens and operators", reconcileEveryMs, log, async (signal) => {
          const stale = (await replication.reconcile(signal)) + (await operatorReplication.reconcile(signal));
          if (stale > 0) log.warn({ stale }, "entries of projects, tokens and operators were stale");
        }),
      ];
      return async () => {
        await Promise.all(listeners.map((each) => each.stop()));
        await Promise.all(jobs.map((each) => each.stop()));
        await Promise.all([publishQueue.idle(), pending.idle()]);
        await outbox.stop();
      };
    },
  };
};

export const createApp = (
  config: RegistryConfig,
  { log, ...overrides }: Overrides & { readonly log?: Logger } = {},
): Service =>
  createService({
    name: "registry",
    config,
    host: config.HERALD_REGISTRY_HOST,
    port: config.HERALD_REGISTRY_PORT,
    metricsPort: config.HERALD_REGISTRY_METRICS_PORT,
    database: config.HERALD_REGISTRY_DATABASE,
    drainMs,
    log,
    assemble: (ground) => assemble(config, { ...ground, ...overrides }),
  });
