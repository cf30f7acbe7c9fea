import { randomUUID } from "node:crypto";
import { connectBus, openBucket, publish, publishEvent, serviceAccess } from "@herald/bus";
import {
  IdempotencyRecord,
  OpenGroupV1,
  OperatorRecord,
  type ProjectId,
  ProjectRecord,
  ProvidersRecord,
  projectRulesKey,
  projectSettingsKey,
  ReceiptGroupV1,
  RulesRecord,
  SessionRecord,
  TokenRecord,
} from "@herald/contracts";
import { createFairGate, createHealth, createOutboundProxy, keyIdsOf, type Logger, proxyAddressOf } from "@herald/kit";
import { createOpenTokens } from "@herald/payload";
import { createAuthenticate } from "./auth/authenticate.ts";
import { isProject, type ShareOwner } from "./auth/caller.ts";
import {
  createOperatorDirectory,
  createProjectDirectory,
  createTokenDirectory,
  replicateBucket,
} from "./auth/directories.ts";
import { createRateLimits } from "./auth/rate-limits.ts";
import { createSeal } from "./auth/seal.ts";
import { createSessionStore } from "./auth/sessions.ts";
import { createBusConnection, createSendRequest } from "./bus-connection.ts";
import type { GatewayConfig } from "./config.ts";
import { type FixedLimits, fixedLimits } from "./fixed-limits.ts";
import { createAuditPublisher } from "./http/audit.ts";
import { createIdempotency } from "./idempotency/idempotency.ts";
import { createKeyRecords } from "./idempotency/key-records.ts";
import { createKeyShare } from "./idempotency/key-share.ts";
import { createProjectLimits, createSlots } from "./limits/project-limits.ts";
import { createCountQueued, createQueueQuota } from "./limits/queue-quota.ts";
import { createLimitsOfProject } from "./limits-of-project.ts";
import { createActivityStore } from "./sending/activities.ts";
import { createGroupReports, dedupeReports, receiptGroups } from "./sending/group-reports.ts";
import { createSendCommands } from "./sending/send-commands.ts";
import { createTemplateDirectory } from "./sending/templates.ts";
import { createGroupsFile } from "./sign-in/groups-file.ts";
import { createIdentityProvider } from "./sign-in/identity-provider.ts";
import { createEventPositions } from "./streams/event-positions.ts";
import { createEventStreams } from "./streams/event-streams.ts";
import { createExportStreams } from "./streams/export-streams.ts";
import { createHashMemory } from "./uploads/hash-set.ts";
import { createStoreImportChunk } from "./uploads/import-lines.ts";
import { createDeadLetters } from "./views/dead-letters.ts";
import { createStatusDirectory } from "./views/system-status.ts";

/** Event streams: a heartbeat twice within the shortest usual proxy timeout, and the time for which a client may stop reading. */
const heartbeatMs = 15_000;
const drainTimeoutMs = 30_000;

/** Requests that read many audit rows wait for each other: of one operator, and of all. */
const auditLine = { perKey: 4, total: 64 };

/** Concurrent file uploads. Each holds a chunk of half a mebibyte. */
const uploadSlots = { perProject: () => 4, total: 32 };

/** What a test may replace. */
export type GatewayOverrides = {
  readonly now?: () => Date;
  readonly heartbeatMs?: number;
  readonly drainTimeoutMs?: number;
  readonly limits?: Partial<FixedLimits>;
};

const identityProviderOf = (config: GatewayConfig, now: () => Date, log: Logger) => {
  const {
    HERALD_GATEWAY_OIDC_ISSUER: issuer,
    HERALD_GATEWAY_OIDC_CLIENT_ID: clientId,
    HERALD_GATEWAY_OIDC_URL: url,
  } = config;
  if (issuer === undefined || clientId === undefined || url === undefined) return undefined;
  return createIdentityProvider({
    issuer,
    clientId,
    clientSecret: config.HERALD_GATEWAY_OIDC_CLIENT_SECRET,
    callback: `${url}/admin/v1/sign-in/callback`,
    home: `${url}/console/`,
    scopes: config.HERALD_GATEWAY_OIDC_SCOPES,
    groupsClaim: config.HERALD_GATEWAY_OIDC_GROUPS_CLAIM,
    proxy: createOutboundProxy(config),
    now,
    log,
  });
};

/** What the gateway's routes use, and what begins and ends with the process. */
export const createRouteDeps = (
  config: GatewayConfig,
  { log, now = () => new Date(), ...overrides }: GatewayOverrides & { readonly log: Logger },
) => {
  const access = serviceAccess(config, "gateway");
  const connection = createBusConnection(() => connectBus({ ...access, log, waitOnFirstConnect: false }), log);
  const tokens = replicateBucket("push_tokens", TokenRecord, connection.bus);
  const operatorRecords = replicateBucket("push_operators", OperatorRecord, connection.bus);
  const sessionRecords = replicateBucket("push_sessions", SessionRecord, connection.bus);
  const anyProject = "*" as ProjectId;
  const projectReplicas = {
    settings: replicateBucket("push_projects", ProjectRecord, connection.bus, projectSettingsKey(anyProject)),
    rules: replicateBucket("push_projects", RulesRecord, connection.bus, projectRulesKey(anyProject)),
    providers: replicateBucket("push_providers", ProvidersRecord, connection.bus),
  };

  const fixed = { ...fixedLimits, ...overrides.limits };
  const limitsOf = createLimitsOfProject({
    config,
    fixed,
    own: (projectId) => projectReplicas.settings.get(projectSettingsKey(projectId))?.limits,
    gateways: () => status.live.gateways,
  });
  /** An operator's places are the same in every project. */
  const places = (name: "event-streams" | "exports") => (owner: ShareOwner) =>
    isProject(owner) ? limitsOf.part(owner, name) : limitsOf.forAll[name];
  const limits = createRateLimits(config, limitsOf);
  const countQueued = createCountQueued(connection.bus, (projectId) => limitsOf.whole(projectId, "queued"));
  const queue = createQueueQuota({
    limitOf: (projectId) => ({
      messages: limitsOf.whole(projectId, "queued"),
      bytes: limitsOf.whole(projectId, "queued-bytes"),
    }),
    count: countQueued,
    now,
    log,
  });
  const sendRequest = createSendRequest(connection.bus);
  const recordOpen = createGroupReports<OpenGroupV1["opens"][number]>(async (projectId, opens) => {
    await publish(connection.bus(), OpenGroupV1, { projectId, opens }, { id: randomUUID() });
  });
  const recordReceipt = createGroupReports<ReceiptGroupV1["receipts"][number]>(async (projectId, receipts) => {
    await publish(connection.bus(), ReceiptGroupV1, { projectId, receipts }, { id: randomUUID() });
  }, receiptGroups);
  const projects = createProjectDirectory(projectReplicas, limits);
  const groupsFile = createGroupsFile(config.HERALD_GATEWAY_OIDC_GROUPS_FILE, log);
  const operators = createOperatorDirectory(config.HERALD_ADMIN_TOKEN, operatorRecords, limits, groupsFile.rightsOf);
  const sessions = createSessionStore({
    replica: sessionRecords,
    bucket: () => openBucket(connection.bus(), "push_sessions", SessionRecord),
    limits,
    now,
  });
  const eventStreams = createEventStreams({
    bus: connection.bus,
    positionsOf: createEventPositions(config.HERALD_OPEN_KEYS),
    now,
    log,
    limits: {
      perProject: places("event-streams"),
      total: config.HERALD_GATEWAY_LIMIT_STREAMS,
    },
    heartbeatMs: overrides.heartbeatMs ?? heartbeatMs,
    drainTimeoutMs: overrides.drainTimeoutMs ?? drainTimeoutMs,
  });
  const exportStreams = createExportStreams({
    log,
    limits: { perProject: places("exports"), total: fixed.exports },
    drainTimeoutMs: overrides.drainTimeoutMs ?? drainTimeoutMs,
  });
  const keyBucket = () => openBucket(connection.bus(), "push_idempotency", IdempotencyRecord);
  const keyRecords = createKeyRecords(keyBucket, log);
  const health = createHealth({
    bus: connection.ready,
    tokens: () => tokens.ready() || "project tokens are not replicated yet; the bootstrap step creates their bucket",
    projects: () => Object.values(projectReplicas).every((one) => one.ready()) || "projects are not replicated yet",
    operators: () =>
      (operatorRecords.ready() && sessionRecords.ready()) ||
      "operators and sessions are not replicated yet; the bootstrap step creates their buckets",
  });
  const status = createStatusDirectory({
    failing: health.failing,
    keys: keyIdsOf(config),
    proxy: proxyAddressOf(config),
    broker: connection.ready,
    now,
  });
  const routes = {
    now,
    status,
    limits,
    projectLimits: createProjectLimits({ limitsOf, limits, countQueued, eventStreams, exportStreams }),
    queue,
    sendRequest,
    /** Identifies the caller. Throws unauthenticated, forbidden, csrf-token-invalid or rate-limited. */
    authenticate: createAuthenticate({
      tokens: createTokenDirectory(tokens, limits, now),
      operators,
      sessions,
      projects,
      sendRequest,
      limits,
    }),
    projects,
    operators,
    sessions,
    /** Undefined: people sign in by tokens alone. */
    identityProvider: identityProviderOf(config, now, log),
    /** Seals the cookies of sign-ins by the identity provider. */
    signInFlows: createSeal(config.HERALD_OPEN_KEYS, "herald sign-in flow"),
    groupsFile,
    /** How long a session by the identity provider lasts. */
    signInSessionMs: config.HERALD_GATEWAY_OIDC_SESSION,
    audit: createAuditPublisher((event) => publishEvent(connection.bus(), event), now),
    idempotency: createIdempotency({
      keys: createKeyShare({ fill: async () => keyBucket().fill(), now, log }),
      records: keyRecords,
      now,
    }),
    sends: createSendCommands(connection.bus, keyRecords, log),
    activities: createActivityStore({ bus: connection.bus, limits: fixed, now, log }),
    templates: createTemplateDirectory(connection.bus),
    deadLetters: createDeadLetters({ bus: connection.bus, sendRequest, projects, log }),
    /** What uploads of recipients remember of their targets. */
    hashMemory: createHashMemory({ total: fixed.uploadBytes, perProject: fixed.projectUploadBytes }),
    /** Takes a slot for the upload of a file. Throws rate-limited. */
    acquireUpload: createSlots(uploadSlots, "imports").acquire,
    /** Throws bus-unavailable or queue-full. */
    storeImportChunk: createStoreImportChunk(connection.bus),
    eventStreams,
    exportStreams,
    /** Permits one request at a time that reads many audit rows; operators take turns. */
    auditGate: createFairGate({ total: 1, perKey: 1, line: auditLine }),
    openTokens: createOpenTokens(config.HERALD_OPEN_KEYS),
    recordOpen: dedupeReports(recordOpen),
    recordReceipt: dedupeReports(recordReceipt),
  };
  const replicas = [tokens, ...Object.values(projectReplicas), operatorRecords, sessionRecords, status];
  return { routes, limits, fixed, health, connection, replicas, groupsFile, eventStreams, exportStreams };
};

/** The dependencies of route handlers. */
export type RouteDeps = ReturnType<typeof createRouteDeps>["routes"];

/** What a function needs that only passes a request on. */
export type RequestDeps = Pick<RouteDeps, "sendRequest">;
