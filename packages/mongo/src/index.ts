export {
  anyExisting,
  anyOf,
  beginsWith,
  findBatched,
  findByIds,
  findByProjects,
  type Inserted,
  inOneCommand,
  insertBatched,
  insertEach,
  insertMissing,
  insertNew,
  type Updated,
  updateBatched,
  withinDeadline,
} from "./batched.ts";
export { isDuplicateKey, retryConflicts, upsertOnce } from "./conflicts.ts";
export { connectMongo, type MongoHandle, type MongoOptions } from "./connect-mongo.ts";
export { type Counts, createCounts, deadlineOptions } from "./counts.ts";
export { dumpDatabase, lastRestore, loadDump } from "./dump.ts";
export { byIndex, ensureIndexes, having, type IndexSpec, indexName, indexNames } from "./ensure-indexes.ts";
export { createErasureStore, type Erasure, type ErasureStore } from "./erasure-store.ts";
export {
  decodeAfter,
  encodeAfter,
  findPage,
  findSome,
  mapPage,
  pageByKey,
  pageOfRows,
  paginationOf,
  projectAfter,
} from "./find-page.ts";
export { createOutbox, type Outbox, type OutboxOptions, outboxIndex } from "./outbox.ts";
export { createPositionStore } from "./position-store.ts";
export {
  applyRetention,
  projectRows,
  type RemovedBatch,
  type RetentionRule,
  readRetentionMark,
  removeByProject,
  removeFirst,
  removeOldest,
  retentionBatch,
  retentionEveryMs,
  startRetention,
} from "./retention.ts";
export { storable } from "./storable.ts";
export { guardStore, isDatabaseUnavailable } from "./unavailable.ts";
