import { setTimeout as sleep } from "node:timers/promises";
import { HeraldError } from "@herald/kit";
import { MongoBulkWriteError, MongoServerError } from "mongodb";

type Refusal = { readonly code?: number | string | undefined; readonly message: string };

const duplicateKey = 11000;
const writeConflict = 112;

/** FerretDB's `findOneAndUpdate` passes on what PostgreSQL calls a duplicate key. */
const isDuplicate = ({ code, message }: Refusal): boolean =>
  code === duplicateKey || /violates (?:exclusion|unique) constraint/.test(message);

/** FerretDB passes these on under codes of its own; two inserts into one unique index are enough to meet them. */
const isCollision = ({ code, message }: Refusal): boolean =>
  code === writeConflict || /deadlock detected|could not serialize access/.test(message);

/**
 * What the server refused: the single writes of a bulk, or the command. A bulk that broke off lists none, and says nothing
 * about what is stored.
 */
const refusals = (error: unknown): readonly Refusal[] => {
  if (error instanceof MongoBulkWriteError)
    return [error.writeErrors].flat().map(({ code, errmsg }) => ({ code, message: errmsg ?? "" }));
  return error instanceof MongoServerError ? [error] : [];
};

/** Whether a write failed because a unique index has that key already. */
export const isDuplicateKey = (error: unknown): boolean => {
  const all = refusals(error);
  return all.length > 0 && all.every(isDuplicate);
};

/** Whether an unordered write of several failed for that reason alone, so that all others are stored. */
export const areDuplicateKeys = (error: unknown): boolean =>
  error instanceof MongoBulkWriteError && isDuplicateKey(error);

/** Whether a write lost to another at the same moment, a deadlock for instance, so that the same again may succeed. */
export const isConflict = (error: unknown): boolean =>
  refusals(error).some(isCollision) || (error instanceof MongoBulkWriteError && isCollision(error));

/** Each deadlock takes PostgreSQL a second to notice; a handful of tries outlasts any crowd that is not a fault. */
const maxTries = 6;
/** Spread wide and wider: those that come back together meet again. */
const waitMs = (tries: number): number => Math.random() * Math.min(250 * 2 ** (tries - 1), 1_000);

/** Many write the same at once: over in a moment. */
const busySeconds = 1;

/** What a conflict is to a caller who does not try again, or has tried often enough. */
export const databaseBusy = (cause: unknown): HeraldError =>
  new HeraldError("database-unavailable", "the database is busy with other writes of the same; try again", {
    cause,
    retryAfterSeconds: busySeconds,
  });

/**
 * Runs something repeatable, up to six times in all, after a short random wait each time that it lost to another write. Throws
 * HeraldError `database-unavailable` when it lost each time, which nothing around it takes for a conflict: six tries within six are six.
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
 * Runs an upsert, and once more when it lost a race: of two that insert the same key at once, one is refused, and the
 * second time it finds the document that the other made.
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
