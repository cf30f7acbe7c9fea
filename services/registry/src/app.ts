import { growingPause, type Logger, retryWhileUnavailable, runEvery } from "@herald/kit";
import { retentionEveryMs, startRetention } from "@herald/mongo";
import { createService, type Service, type ServiceDefinition, type ServiceDeps } from "@herald/service";
import type { RegistryConfig } from "./config.ts";
import { createDeps } from "./deps.ts";
import { handleRetireDevice, recordDeviceOpens } from "./handlers/devices.ts";
import { expand } from "./handlers/expand.ts";
import { applyImportChunk, createImportGate } from "./imports/apply-import-chunk.ts";
import { handleImportRequests } from "./imports/import-requests.ts";
import { endPauses } from "./jobs/end-pauses.ts";
import { removeDeleted } from "./jobs/remove-deleted.ts";
import { retireStaleDevices } from "./jobs/retire-stale-devices.ts";
import { handleAudienceRequests } from "./requests/audience.ts";
import { handleAuditRequests, recordAudit } from "./requests/audit.ts";
import { handleDeviceRequests } from "./requests/devices.ts";
import { handleFurtherTokenRequests } from "./requests/further-tokens.ts";
import { handleIdentityKeyRequests } from "./requests/identity-keys.ts";
import { handleKindRequests } from "./requests/kinds.ts";
import { handleOperatorRequests } from "./requests/operators.ts";
import { handlePauseRequests } from "./requests/pauses.ts";
import { handlePreferenceRequests } from "./requests/preferences.ts";
import { handleProjectRequests } from "./requests/projects.ts";
import { handleTemplateRequests } from "./requests/templates.ts";
import { handleTopicRequests } from "./requests/topics.ts";
import { handleUserRequests } from "./requests/users.ts";

/** How long a stop waits for messages in progress: registry publishes the pages that it has read. */
const drainMs = 20_000;
/** The outbox removes a tombstone with its event, within seconds. Retention removes the tombstones that a crash left. */
const tombstoneMs = 86_400_000;

/** Imports, their chunks and their errors are removed after this time, also those of unfinished uploads. */
const importMs = 30 * 86_400_000;

/** How often registry looks for pauses whose end has come. */
const pausesEveryMs = 1_000;

const defaults = {
  now: () => new Date(),
  /** Deletions that a crash interrupted continue within this time. */
  removeEveryMs: 5_000,
  /** A deleted project is removed after this time: no request that began before the deletion takes longer. */
  lingerMs: 60_000,
  /** Entries that a crash left stale are repaired within this time. */
  reconcileEveryMs: 60_000,
  /** How often registry publishes events of new devices that a crash left. */
  pendingEveryMs: 2_000,
  /** How often registry looks for preferences to copy again. */
  copyEveryMs: 10_000,
  /** Stale devices are deactivated within this time. `stale_after` is counted in days. */
  staleEveryMs: 3_600_000,
  retentionEveryMs,
  /** After this many deliveries the lines of an import chunk are refused: about ten minutes, because the pauses grow. */
  maxChunkTries: 20,
};

/** What a test may replace. */
type Overrides = Partial<typeof defaults>;

const assemble = (config: RegistryConfig, base: ServiceDeps & Overrides): ServiceDefinition => {
  const { db, log, ...overrides } = base;
  const {
    now,
    removeEveryMs,
    lingerMs,
    reconcileEveryMs,
    pendingEveryMs,
    copyEveryMs,
    staleEveryMs,
    retentionEveryMs,
    maxChunkTries,
  } = { ...defaults, ...overrides };
  const auditMs = config.HERALD_REGISTRY_AUDIT_RETENTION;
  const deps = createDeps(config, { ...base, now });
  const importGate = createImportGate();
  const { projects, pauses, operators, audit, topics, templates, devices } = deps;
  const { userPreferences, pending, expansions, imports, erasures } = deps;
  const { outbox, replication, operatorReplication, templateReplication, masterKeys } = deps;
  const withIndexes = [
    ...[projects, pauses, operators, audit, topics, templates, devices],
    ...[userPreferences, pending, expansions, imports, erasures],
  ];

  return {
    prepare: async () => {
      for (const store of withIndexes) await store.ensureIndexes();
      await projects.rewrapSecrets(masterKeys, log);
    },
    handlers: [
      expand(deps),
      handleRetireDevice(deps),
      recordDeviceOpens(deps),
      applyImportChunk(deps, { maxTries: maxChunkTries, gate: importGate, log }),
      recordAudit(audit, log),
    ],
    begin: () => {
      const listeners = [
        ...handleProjectRequests(deps),
        ...handlePauseRequests(deps),
        ...handleKindRequests(deps),
        ...handlePreferenceRequests(deps),
        ...handleOperatorRequests(deps),
        ...handleAuditRequests(deps),
        ...handleIdentityKeyRequests(deps),
        ...handleUserRequests(deps),
        ...handleDeviceRequests(deps),
        ...handleFurtherTokenRequests(deps),
        ...handleImportRequests(deps),
        ...handleTopicRequests(deps),
        ...handleTemplateRequests(deps),
        ...handleAudienceRequests(deps),
      ];
      outbox.start();
      const rules = [
        { name: "tombstones", keepMs: tombstoneMs, removeBatch: devices.removeTombstones },
        { name: "imports", keepMs: importMs, removeBatch: imports.removeOld },
        // Last, because it fails if audit rows were tampered with.
        ...(auditMs === undefined ? [] : [{ name: "auditRows", keepMs: auditMs, removeBatch: audit.removeOld }]),
      ];
      const jobs = [
        startRetention({ db, rules, everyMs: retentionEveryMs, now, log }),
        runEvery("continue deletions", removeEveryMs, log, (signal) => removeDeleted(deps, lingerMs, signal)),
        runEvery("retire stale devices", staleEveryMs, log, async (signal) => {
          const retired = await retireStaleDevices(deps, signal);
          if (retired > 0) log.info({ devices: retired }, "deactivated stale devices");
        }),
        runEvery("end pauses", pausesEveryMs, log, () => endPauses(deps)),
        runEvery("copy preferences of users", copyEveryMs, log, () => userPreferences.sweep(now())),
        runEvery("publish events of new devices", pendingEveryMs, log, pending.sweep),
        runEvery("reconcile projects, tokens, operators and templates", reconcileEveryMs, log, async (signal) => {
          let stale = 0;
          for (const one of [replication, operatorReplication, templateReplication])
            stale += await retryWhileUnavailable(() => one.reconcile(signal, log), growingPause(signal));
          if (stale > 0) log.warn({ stale }, "entries of projects, tokens, operators and templates were stale");
        }),
      ];
      return [listeners, jobs, [{ stop: pending.idle }], [outbox]];
    },
    closeGates: importGate.close,
  };
};

export const createApp = (
  config: RegistryConfig,
  { log, ...overrides }: Overrides & { readonly log?: Logger } = {},
): Service =>
  createService({
    name: "registry",
    config,
    drainMs,
    log,
    assemble: (base) => assemble(config, { ...base, ...overrides }),
  });
