export { decodeAfter, encodeAfter } from "./after-key.ts";
export { anyOf } from "./any-of.ts";
export {
  findBatched,
  type Inserted,
  inOneCommand,
  insertBatched,
  insertEach,
  type Updated,
  updateBatched,
  withinDeadline,
} from "./batched.ts";
export type { OutboxEntry } from "./clear-outboxes.ts";
export { areDuplicateKeys, isConflict, isDuplicateKey, retryConflicts, upsertOnce } from "./conflicts.ts";
export { connectMongo, type MongoHandle, type MongoOptions } from "./connect-mongo.ts";
export { type Counts, createCounts } from "./counts.ts";
export { deadlineOptions } from "./deadline-options.ts";
export { byIndex, ensureIndexes, type IndexSpec, indexName } from "./ensure-indexes.ts";
export { createErasureStore, type Erasure, type ErasureStore } from "./erasure-store.ts";
export { type FindPageOptions, findPage } from "./find-page.ts";
export { insertMissing, insertNew } from "./insert-missing.ts";
export {
  createOutbox,
  type Outbox,
  type OutboxOptions,
  outboxIndex,
  type WrittenDocument,
} from "./outbox.ts";
export { pageOfRows } from "./page-of-rows.ts";
export { createPositionStore } from "./position-store.ts";
export {
  applyRetention,
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
