export { type ByteCache, type ByteCacheOptions, createByteCache } from "./byte-cache.ts";
export { ConfigError, fileVariable, readConfig } from "./config/read-config.ts";
export {
  httpConfig,
  logConfig,
  mongoConfig,
  natsConfig,
  retentionConfig,
  telemetryConfig,
} from "./config/shared-blocks.ts";
export { type VariableInfo, variable, variableInfo, variables } from "./config/variables.ts";
export { createDeadline, type Deadline } from "./deadline.ts";
export { type DescribeOptions, describeIssues, knownFields } from "./describe-issues.ts";
export type { Envelope, Owner } from "./envelope/envelope.ts";
export { rewrap, seal, UnknownMasterKey, unseal } from "./envelope/envelope.ts";
export type { MasterKeys } from "./envelope/master-keys.ts";
export { parseMasterKeys } from "./envelope/master-keys.ts";
export { rewrapAll } from "./envelope/rewrap-all.ts";
export { createFairGate, createShares, type FairGate, type Shares } from "./fair-gate.ts";
export { type Fault, messageOf, pointerTo } from "./fault.ts";
export { createGroupCommit, type GroupCommitOptions } from "./group-commit.ts";
export { createHealth, type Health } from "./health.ts";
export { HeraldError, toProblem } from "./herald-error.ts";
export { clientAddress } from "./http/client-address.ts";
export { createHttpApp } from "./http/create-http-app.ts";
export { createReadBody, defaultBodyLimitBytes, parseJson, type ReadBody } from "./http/json-body.ts";
export { createMemoryLimit, type MemoryLimit, type ReserveMemory } from "./http/memory-limit.ts";
export { type HttpRoute, type RouteMatch, serveRoutes } from "./http/serve-routes.ts";
export { probeRoutes, startHealthServer } from "./http/start-health-server.ts";
export {
  allowLongUpload,
  defaultHttpTimeouts,
  type HttpServer,
  type HttpTimeouts,
  startHttp,
} from "./http/start-http.ts";
export { createLifecycle, type Lifecycle } from "./lifecycle.ts";
export { createLogger, type Logger, type LoggerOptions } from "./logger.ts";
export { memoryBytesOf } from "./memory-bytes.ts";
export { nearestName } from "./nearest-name.ts";
export { checkPublicEndpoint, notPublicText, publicLookup, type Resolve } from "./outbound/public-endpoint.ts";
export { retryAfterMs } from "./outbound/retry-after.ts";
export { socketErrorText } from "./outbound/socket-error-text.ts";
export { parseBody, parseQuery, parseSearch, queryOf } from "./parse-request.ts";
export { type Repeating, repeat } from "./repeat.ts";
export {
  acceptRequestId,
  currentDeadline,
  currentRequestId,
  withinDeadline,
  withRequestId,
} from "./request-context.ts";
export { type App, runService } from "./run-service.ts";
export { bareSchemas } from "./schema-at.ts";
export { scrub } from "./scrub.ts";
export {
  failSpan,
  inSpan,
  meter,
  type SpanOptions,
  secondsHistogram,
  startClientSpan,
  tracer,
} from "./telemetry/spans.ts";
export { exportsTraces } from "./telemetry/start-sdk.ts";
export { startTelemetry, type TelemetryOptions } from "./telemetry/start-telemetry.ts";
export { withTimeout } from "./with-timeout.ts";
export { createYieldIfDue } from "./yield-if-due.ts";
