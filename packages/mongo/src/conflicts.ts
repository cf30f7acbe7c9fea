import { setTimeout as sleep } from "node:timers/promises";
import { HeraldError } from "@herald/kit";
import { MongoBulkWriteError, MongoServerError } from "mongodb";

type Refusal = { readonly code?: number | string | undefined; readonly message: string };

const duplicateKey = 11000;
const writeConflict = 112;

/** FerretDB's `findOneAndUpdate` returns PostgreSQL's text for a duplicate key. */
const isDuplicate = ({ code, message }: Refusal): boolean =>
  code === duplicateKey || /violates (?:exclusion|unique) constraint/.test(message);

/** FerretDB returns these under its own codes. Two concurrent inserts into a unique index can cause them. */
const isCollision = ({ code, message }: Refusal): boolean =>
  code === writeConflict || /deadlock detected|could not serialize access/.test(message);

/**
 * The writes of a bulk that the server refused, or the refused command. A bulk whose connection broke lists none and does not say
 * which writes are stored.
 */
const refusals = (error: unknown): readonly Refusal[] => {
  if (error instanceof MongoBulkWriteError)
    return [error.writeErrors].flat().map(({ code, errmsg }) => ({ code, message: errmsg ?? "" }));
  return error instanceof MongoServerError ? [error] : [];
};

/** Whether a write failed only because a unique index already has its key. */
export const isDuplicateKey = (error: unknown): boolean => {
  const all = refusals(error);
  return all.length > 0 && all.every(isDuplicate);
};

/** Whether an unordered bulk failed for that reason alone, so that all other documents are stored. */
export const areDuplicateKeys = (error: unknown): boolean =>
  error instanceof MongoBulkWriteError && isDuplicateKey(error);

/** Whether a write conflicted with a concurrent one, such as a deadlock, so that a retry may succeed. */
export const isConflict = (error: unknown): boolean =>
  refusals(error).some(isCollision) || (error instanceof MongoBulkWriteError && isCollision(error));

/** PostgreSQL needs a second to detect a deadlock; six attempts outlast any normal contention. */
const maxTries = 6;
/** Grows with each attempt and is random: writers that retry together would conflict again. */
const waitMs = (tries: number): number => Math.random() * Math.min(250 * 2 ** (tries - 1), 1_000);

/** Retry-After in seconds: contention is short. */
const busySeconds = 1;

/** The error for a caller when retries of a conflict are used up. */
export const databaseBusy = (cause: unknown): HeraldError =>
  new HeraldError("database-unavailable", "concurrent writes to the same data keep conflicting; try again", {
    cause,
    retryAfterSeconds: busySeconds,
  });

/**
 * Runs a repeatable function and retries it after a write conflict, up to six attempts, with a short random delay. Then throws
 * HeraldError `database-unavailable`. Nested calls do not multiply: that error is not a conflict.
 */
export const retryConflicts = async <T>(fn: () => T | Promise<T>): Promise<T> => {
  for (let tries = 1; ; tries++) {
    try {
      return await fn();
    } catch (error) {
      if (!isConflict(error)) throw error;
      if (tries >= maxTries) throw databaseBusy(error);
    }
    await sleep(waitMs(tries));
  }
};

/**
 * Runs an upsert, and retries it once after a duplicate key: of two concurrent inserts one is refused, and its retry finds the
 * document of the other.
 */
export const upsertOnce = <T>(fn: () => Promise<T>): Promise<T> =>
  retryConflicts(async () => {
    try {
      return await fn();
    } catch (error) {
      if (!isDuplicateKey(error)) throw error;
      return await fn();
    }
  });
