export { LRUCache } from "lru-cache";
export { type ByteCache, createByteCache, memoryBytesOf } from "./byte-cache.ts";
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
export { type DescribeOptions, describeIssues, knownFields } from "./describe-issues.ts";
export type { Envelope, MasterKeys, Owner } from "./envelope/envelope.ts";
export {
  parseMasterKeys,
  parseOpenKeys,
  rewrap,
  rewrapAll,
  seal,
  UnknownMasterKey,
  unseal,
} from "./envelope/envelope.ts";
export { createFairGate, createShares, type FairGate, type Shares } from "./fair-gate.ts";
export { createGroupCommit, type GroupCommitOptions } from "./group-commit.ts";
export { createHealth, type Health } from "./health.ts";
export { existing, type Fault, HeraldError, messageOf, pointerTo, toProblem } from "./herald-error.ts";
export { clientAddress } from "./http/client-address.ts";
export { createHttpApp, startHealthServer } from "./http/create-http-app.ts";
export { createReadBody, defaultBodyLimitBytes, parseJson, type ReadBody } from "./http/json-body.ts";
export { createMemoryLimit, type MemoryLimit, type ReserveMemory } from "./http/memory-limit.ts";
export { type HttpRoute, type RouteMatch, serveRoutes } from "./http/serve-routes.ts";
export {
  allowLongUpload,
  defaultHttpTimeouts,
  type HttpServer,
  type HttpTimeouts,
  startHttp,
} from "./http/start-http.ts";
export { createLifecycle, type Lifecycle, withTimeout } from "./lifecycle.ts";
export { createLogger, type Logger, type LoggerOptions } from "./logger.ts";
export { nearestName } from "./nearest-name.ts";
export { checkPublicEndpoint, notPublicText, publicLookup, type Resolve } from "./outbound/public-endpoint.ts";
export { retryAfterMs } from "./outbound/retry-after.ts";
export { socketErrorText } from "./outbound/socket-error-text.ts";
export { parseBody, parseQuery, parseSearch } from "./parse-request.ts";
export { scrub } from "./redact.ts";
export { type Repeating, repeat } from "./repeat.ts";
export {
  acceptRequestId,
  createDeadline,
  currentDeadline,
  currentRequestId,
  type Deadline,
  withinDeadline,
  withRequestId,
} from "./request-context.ts";
export { type App, runService } from "./run-service.ts";
export { bareSchemas } from "./schema-at.ts";
export {
  failSpan,
  inSpan,
  meter,
  type SpanOptions,
  secondsHistogram,
  startClientSpan,
  tracer,
} from "./telemetry/spans.ts";
export { exportsTraces, startTelemetry, type TelemetryOptions } from "./telemetry/start-telemetry.ts";
export { createYieldIfDue } from "./yield-if-due.ts";
