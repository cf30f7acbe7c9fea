import { HeraldError } from "@herald/kit";
import {
  MongoBulkWriteError,
  MongoClientClosedError,
  MongoError,
  MongoNetworkError,
  MongoNotConnectedError,
  MongoOperationTimeoutError,
  MongoServerClosedError,
  MongoServerError,
  MongoServerSelectionError,
  MongoTopologyClosedError,
} from "mongodb";
import { databaseBusy, isConflict, retryConflicts } from "./conflicts.ts";

/** Errors of the driver when it reaches no server, or no primary. */
const unavailableClasses = [
  MongoNetworkError,
  MongoServerSelectionError,
  MongoNotConnectedError,
  MongoTopologyClosedError,
  MongoServerClosedError,
  MongoClientClosedError,
  MongoOperationTimeoutError,
];

/** Not exported by the driver: the pool was closed, or had no free connection in time. */
const unavailableNames = new Set(["MongoPoolClosedError", "MongoPoolClearedError", "MongoWaitQueueTimeoutError"]);

/** Error codes of a server that stops, starts, is not the primary or does not let the service in. */
const unavailableCodes = new Set<number | string | undefined>([
  6, // HostUnreachable
  7, // HostNotFound
  18, // AuthenticationFailed: the password was changed, and the service restarts with the new one
  50, // MaxTimeMSExpired: the deadline of the call passed, or the server is too slow
  64, // WriteConcernTimeout
  89, // NetworkTimeout
  91, // ShutdownInProgress
  100, // UnsatisfiableWriteConcern
  133, // FailedToSatisfyReadPreference
  134, // ReadConcernMajorityNotAvailableYet
  189, // PrimarySteppedDown
  262, // ExceededTimeLimit
  9001, // SocketException
  10058, // NotPrimary, of old servers
  10107, // NotWritablePrimary
  11600, // InterruptedAtShutdown
  11602, // InterruptedDueToReplStateChange
  13435, // NotPrimaryNoSecondaryOk
  13436, // NotPrimaryOrSecondary
  14031, // OutOfDiskSpace
]);

/**
 * FerretDB returns PostgreSQL's errors as internal errors: PostgreSQL is unreachable, starting, stopping, out of connections or disk,
 * or it cancelled a read at its deadline.
 */
const unavailableMessages =
  /SQLSTATE (?:08|53|57P|57014)|statement timeout|failed to connect to|connection (?:refused|reset)|closed pool|conn closed|unexpected EOF|No space left on device/i;

/** The driver does not wrap some of Node's socket errors. */
const socketCodes = new Set<unknown>([
  "ECONNREFUSED",
  "ECONNRESET",
  "ECONNABORTED",
  "EPIPE",
  "ETIMEDOUT",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "ENOTFOUND",
  "EAI_AGAIN",
]);

/** Whether an error means that the database is unavailable, so that the same call may succeed later. */
export const isDatabaseUnavailable = (error: unknown): boolean => {
  if (!(error instanceof MongoError)) return error instanceof Error && "code" in error && socketCodes.has(error.code);
  // A bulk write wraps a broken connection as if it were a response of the server.
  if (error instanceof MongoBulkWriteError && error.errorResponse instanceof Error)
    return isDatabaseUnavailable(error.errorResponse);
  if (unavailableClasses.some((kind) => error instanceof kind) || unavailableNames.has(error.name)) return true;
  return (
    error instanceof MongoServerError && (unavailableCodes.has(error.code) || unavailableMessages.test(error.message))
  );
};

/** Retry-After in seconds: about the time that the database needs to recover. */
const unavailableSeconds = 5;

/** Turns an error that means the database is unavailable into a HeraldError; returns every other error unchanged. */
export const orUnavailable = (error: unknown): unknown =>
  isDatabaseUnavailable(error)
    ? new HeraldError("database-unavailable", "the database is unavailable; try again", {
        cause: error,
        retryAfterSeconds: unavailableSeconds,
      })
    : error;

/** The same for an error of one write of several, which nothing repeats at once: also if it conflicted with another write. */
export const orUnavailableOrBusy = (error: unknown): unknown => {
  const unavailable = orUnavailable(error);
  if (unavailable !== error) return unavailable;
  return isConflict(error) ? databaseBusy(error) : error;
};

/** Runs a function. Throws HeraldError `database-unavailable` when the database is unavailable, otherwise the original error. */
export const unavailableAsError = async <T>(fn: () => T | Promise<T>): Promise<T> => {
  try {
    return await fn();
  } catch (error) {
    throw orUnavailableOrBusy(error);
  }
};

/**
 * Wraps every function of a store: retries write conflicts, and throws HeraldError `database-unavailable` when the database is
 * unavailable. The functions must be repeatable and return data: a cursor would fail later, outside of the guard.
 */
export const guardStore = <Store extends Readonly<Record<string, unknown>>>(store: Store): Store =>
  Object.fromEntries(
    Object.entries(store).map(([name, value]) => {
      if (typeof value !== "function") return [name, value];
      return [name, (...args: unknown[]) => unavailableAsError(() => retryConflicts(() => value.apply(store, args)))];
    }),
  ) as Store;
