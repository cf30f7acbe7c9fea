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

/** What the driver throws itself when it reaches nobody, or nobody who may write. */
const unavailableClasses = [
  MongoNetworkError,
  MongoServerSelectionError,
  MongoNotConnectedError,
  MongoTopologyClosedError,
  MongoServerClosedError,
  MongoClientClosedError,
  MongoOperationTimeoutError,
];

/** Not exported by the driver: the pool was closed, or nobody got a connection from it in time. */
const unavailableNames = new Set(["MongoPoolClosedError", "MongoPoolClearedError", "MongoWaitQueueTimeoutError"]);

/** What a server answers while it is going, coming or no longer the one that writes. */
const unavailableCodes = new Set<number | string | undefined>([
  6, // HostUnreachable
  7, // HostNotFound
  50, // MaxTimeMSExpired: it was stopped for its caller, or is too slow
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
 * FerretDB passes on what its PostgreSQL says, as an internal error: it is unreachable, starting, stopping, out of
 * connections, its disk is full, or a read was stopped in time.
 */
const unavailableMessages =
  /SQLSTATE (?:08|53|57P|57014)|statement timeout|failed to connect to|connection (?:refused|reset)|closed pool|conn closed|unexpected EOF|No space left on device/i;

/** The driver lets some of Node's own socket errors through as they are. */
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

/** Whether the database could not do it because it is unavailable, so that the same call may succeed later. */
export const isUnavailable = (error: unknown): boolean => {
  if (!(error instanceof MongoError)) return error instanceof Error && "code" in error && socketCodes.has(error.code);
  // A bulk write wraps what broke it off, as the answer of a server that never answered.
  if (error instanceof MongoBulkWriteError && error.errorResponse instanceof Error)
    return isUnavailable(error.errorResponse);
  if (unavailableClasses.some((kind) => error instanceof kind) || unavailableNames.has(error.name)) return true;
  return (
    error instanceof MongoServerError && (unavailableCodes.has(error.code) || unavailableMessages.test(error.message))
  );
};

/** About how long the database needs to come back, in seconds: what a caller is told to wait. */
const unavailableSeconds = 5;

/** The same where it is not that the database is unavailable. */
export const orUnavailable = (error: unknown): unknown =>
  isUnavailable(error)
    ? new HeraldError("database-unavailable", "the database is unavailable; try again", {
        cause: error,
        retryAfterSeconds: unavailableSeconds,
      })
    : error;

const translate = (error: unknown): unknown => {
  const away = orUnavailable(error);
  if (away !== error) return away;
  return isConflict(error) ? databaseBusy(error) : error;
};

/** Runs a function; when it fails because the database is unavailable, throws HeraldError `database-unavailable`, else what it threw. */
export const unavailableAsError = async <T>(fn: () => T | Promise<T>): Promise<T> => {
  try {
    return await fn();
  } catch (error) {
    throw translate(error);
  }
};

/**
 * The same store, each of whose functions is run again when it lost to another write, and throws HeraldError
 * `database-unavailable` when the database is why it failed. So its functions are repeatable, as everything in Herald that writes
 * is, and return promises of data: a cursor that is read later would fail outside of the guard.
 */
export const guardStore = <Store extends Readonly<Record<string, unknown>>>(store: Store): Store =>
  Object.fromEntries(
    Object.entries(store).map(([name, value]) => {
      if (typeof value !== "function") return [name, value];
      return [name, (...args: unknown[]) => unavailableAsError(() => retryConflicts(() => value.apply(store, args)))];
    }),
  ) as Store;
