export { LRUCache } from "lru-cache";
export { runBackupCommand } from "./backup/run-backup.ts";
export { createByteCache, memoryBytesOf } from "./byte-cache.ts";
export { ConfigError, fileVariable, readConfig } from "./config/read-config.ts";
export {
  databaseOf,
  httpConfig,
  logConfig,
  natsConfig,
  proxyConfig,
  proxyResolvesConfig,
  serviceConfig,
  telemetryConfig,
} from "./config/shared-blocks.ts";
export * as variables from "./config/variables.ts";
export { variableInfo } from "./config/variables.ts";
export { describeIssues, knownFields } from "./describe-issues.ts";
export type { Envelope, MasterKeys } from "./envelope/envelope.ts";
export {
  decrypt,
  encrypt,
  keyIdsOf,
  parseMasterKeys,
  parseOpenKeys,
  rewrapAll,
  seal,
  UnknownMasterKey,
  unseal,
} from "./envelope/envelope.ts";
export { createFairGate, createShares, type FairGate } from "./fair-gate.ts";
export { createGroupCommit, type GroupCommit, type GroupCommitOptions } from "./group-commit.ts";
export { createHealth } from "./health.ts";
export { existing, type Fault, HeraldError, hasCode, messageOf, notFound, pointerTo } from "./herald-error.ts";
export { clientAddress, createMemoryLimit, type MemoryLimit, type ReserveMemory } from "./http/address-limits.ts";
export { createHttpApp } from "./http/create-http-app.ts";
export { startHealthServer } from "./http/create-listener.ts";
export { createReadBody, defaultBodyLimitBytes, parseJson } from "./http/json-body.ts";
export { type HttpRoute, type RouteMatch, serveRoutes } from "./http/serve-routes.ts";
export { allowLongUpload, type HttpServer, startHttp } from "./http/start-http.ts";
export { createLifecycle } from "./lifecycle.ts";
export {
  createLineReader,
  csvColumns,
  type FileLine,
  lineErrors,
  lineJson,
  type RefusedLine,
  refuseLine,
} from "./lines/line-reader.ts";
export { positionMismatch } from "./lines/position-mismatch.ts";
export { createLogger, type Logger } from "./logger.ts";
export { createOutboundProxy, type Dial, type OutboundProxy, proxyAddressOf } from "./outbound/proxy.ts";
export { createProxyAgent } from "./outbound/proxy-agent.ts";
export { openTunnel, ProxyError } from "./outbound/proxy-tunnel.ts";
export {
  checkPublicEndpoint,
  endpointProblem,
  notPublicText,
  publicLookup,
  type Resolve,
} from "./outbound/public-endpoint.ts";
export { parseRetryAfter } from "./outbound/retry-after.ts";
export { socketErrorText } from "./outbound/socket-error-text.ts";
export { parseBody, parseQuery, parseSearch } from "./parse-request.ts";
export {
  createDeadline,
  currentDeadline,
  currentOwnRequestId,
  currentRequestId,
  runWithDeadline,
  withRequestId,
  withTimeout,
} from "./request-context.ts";
export { growingPause, isUnavailable, retryWhileUnavailable } from "./retry-while-unavailable.ts";
export { type PeriodicTask, runEvery } from "./run-every.ts";
export { runService } from "./run-service.ts";
export { bareSchemas } from "./schema-at.ts";
export { failSpan, inSpan, meter, secondsHistogram, startClientSpan } from "./telemetry/spans.ts";
export { exportsTraces, startTelemetry } from "./telemetry/start-telemetry.ts";
export { version } from "./version.ts";
export { createYieldIfDue } from "./yield-if-due.ts";
