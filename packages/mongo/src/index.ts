export {
  anyExisting,
  anyOf,
  beginsWith,
  findBatched,
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
export type { OutboxEntry } from "./clear-outboxes.ts";
export { areDuplicateKeys, isConflict, isDuplicateKey, retryConflicts, upsertOnce } from "./conflicts.ts";
export { connectMongo, type MongoHandle, type MongoOptions } from "./connect-mongo.ts";
export { type Counts, createCounts, deadlineOptions } from "./counts.ts";
export { byIndex, ensureIndexes, having, type IndexSpec, indexName, indexNames } from "./ensure-indexes.ts";
export { createErasureStore, type Erasure, type ErasureStore } from "./erasure-store.ts";
export {
  decodeAfter,
  encodeAfter,
  type FindPageOptions,
  findPage,
  findSome,
  mapPage,
  pageOfRows,
  paginationOf,
} from "./find-page.ts";
export {
  createOutbox,
  type Outbox,
  type OutboxOptions,
  outboxIndex,
  type WrittenDocument,
} from "./outbox.ts";
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
  startRetention,
} from "./retention.ts";
export { guardStore, isUnavailable, unavailableAsError } from "./unavailable.ts";
