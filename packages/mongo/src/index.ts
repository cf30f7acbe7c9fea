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
} from "./batched.ts";
export type { OutboxEntry } from "./clear-outboxes.ts";
export { areDuplicateKeys, isConflict, isDuplicateKey, retryConflicts, upsertOnce } from "./conflicts.ts";
export { connectMongo, type MongoHandle, type MongoOptions } from "./connect-mongo.ts";
export { type Counts, createCounts } from "./counts.ts";
export { byIndex, ensureIndexes, type IndexSpec, indexName } from "./ensure-indexes.ts";
export { createErasureStore, type Erasure, type ErasureStore } from "./erasure-store.ts";
export { type FindPageOptions, findPage } from "./find-page.ts";
export { forCaller } from "./for-caller.ts";
export { insertMissing, insertNew } from "./insert-missing.ts";
export {
  type Announced,
  createOutbox,
  type Outbox,
  type OutboxOptions,
  outboxIndex,
} from "./outbox.ts";
export { pageOfRows } from "./page-of-rows.ts";
export { createPositionStore } from "./position-store.ts";
export {
  type RemovedBatch,
  type RetentionRule,
  removeByProject,
  removedBefore,
  removeFirst,
  removeOldest,
  retentionBatch,
  runRetention,
  startRetention,
} from "./retention.ts";
export { guardStore, isAway, unavailableAsError } from "./unavailable.ts";
