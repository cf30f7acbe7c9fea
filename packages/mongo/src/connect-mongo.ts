import { setTimeout as sleep } from "node:timers/promises";
import { exportsTraces, failSpan, type Logger, startClientSpan } from "@herald/kit";
import { type Db, MongoClient, MongoServerError, MongoServerSelectionError } from "mongodb";
import { wakeWriters } from "./wake-writers.ts";

const unauthorized = 13;
const authenticationFailed = 18;

/** Why a service waits for its database, and what its operator can do. The log also contains the driver's own message. */
export const whyWaiting = (error: unknown, database: string): string => {
  if (error instanceof MongoServerError && error.code === authenticationFailed)
    return "the database refuses the user: check user, password and authSource in HERALD_MONGO_URL";
  if (error instanceof MongoServerError && error.code === unauthorized)
    return `not authorized: HERALD_MONGO_URL needs a user with the role readWrite on ${database}`;
  if (error instanceof MongoServerSelectionError)
    return "the database cannot be reached: check HERALD_MONGO_URL, and that the server runs";
  return "trying again until it succeeds";
};

/**
 * Makes a client span for each command inside a recorded span, named after the command and its collection. Filters and documents are not
 * recorded. The driver reports commands only with `monitorCommands`.
 */
export const traceCommands = (client: MongoClient): void => {
  const spans = new Map<number, ReturnType<typeof startClientSpan>>();
  client.on("commandStarted", ({ requestId, commandName, databaseName, command }) => {
    const target: unknown = commandName === "getMore" ? command.collection : command[commandName];
    const collection = typeof target === "string" ? target : undefined;
    const span = startClientSpan(collection === undefined ? commandName : `${commandName} ${collection}`, {
      "db.system.name": "mongodb",
      "db.namespace": databaseName,
      "db.operation.name": commandName,
      ...(collection === undefined ? {} : { "db.collection.name": collection }),
    });
    if (span) spans.set(requestId, span);
  });
  const end = (requestId: number, failure?: Error) => {
    const span = spans.get(requestId);
    if (!span) return;
    spans.delete(requestId);
    if (failure) failSpan(span, failure);
    span.end();
  };
  client.on("commandSucceeded", ({ requestId }) => end(requestId));
  client.on("commandFailed", ({ requestId, failure }) => end(requestId, failure));
};

/** A request waits this long for a primary before it fails with 503. */
const serverSelectionMs = 2_500;
const connectMs = 5_000;
/** Longer than Herald's slowest query, an exact count of a very large set. */
const socketMs = 60_000;
/** Four services and their replicas share a server that may be a PostgreSQL with 200 connections. */
const poolSize = 40;
/** When the pool stays busy this long, the database counts as unavailable. */
const waitQueueMs = 5_000;
/** A ping that is slower does not count. */
const pingMs = 800;
const retryMs = { first: 250, max: 5_000 };
/** How often the log repeats that the service waits. */
const reminderMs = 30_000;

export type MongoHandle = {
  readonly db: Db;
  /** Whether the database answers, within a second. Never throws. */
  readonly ping: () => Promise<boolean>;
  /** Retries a task that needs the database, such as creating indexes, until it succeeds or the handle is closed. */
  readonly prepare: (what: string, task: () => Promise<unknown>) => Promise<void>;
  /** Whether everything given to `prepare` is done: a check for readiness. */
  readonly prepared: () => boolean;
  readonly close: () => Promise<void>;
};

export type MongoOptions = {
  readonly url: string;
  readonly database: string;
  readonly log: Logger;
  /** Seen in the server's logs and list of connections. */
  readonly appName: string;
};

const nameOf = (error: unknown): string => (error instanceof Error ? error.name : "unknown");

/**
 * Connects to one database. Neither waits nor fails when it is unavailable: services start in any order. Logs when it begins to wait and
 * when the database is available. Writes are acknowledged by a majority, from the journal.
 */
export const connectMongo = ({ url, database, log, appName }: MongoOptions): MongoHandle => {
  wakeWriters();
  const client = new MongoClient(url, {
    appName,
    serverSelectionTimeoutMS: serverSelectionMs,
    connectTimeoutMS: connectMs,
    socketTimeoutMS: socketMs,
    maxPoolSize: poolSize,
    waitQueueTimeoutMS: waitQueueMs,
    writeConcern: { w: "majority", journal: true },
    readPreference: "primary",
    // The driver omits it for standalone servers, which FerretDB claims to be.
    retryWrites: true,
    // Undefined fields are omitted, as in JSON.
    ignoreUndefined: true,
    // Monitoring reads each reply once more, which is only worth it for spans.
    monitorCommands: exportsTraces(),
  });
  traceCommands(client);
  const db = client.db(database);
  const closing = new AbortController();
  let unprepared = 0;

  const until = async (what: string, attempt: () => Promise<unknown>): Promise<void> => {
    let wait = retryMs.first;
    let saidAt: number | undefined;
    while (!closing.signal.aborted) {
      try {
        await attempt();
        if (saidAt !== undefined) log.info({ database, what }, "the database is there");
        return;
      } catch (error) {
        if (closing.signal.aborted) return;
        if (saidAt === undefined || Date.now() - saidAt > reminderMs) {
          log.warn(
            { database, what, reason: nameOf(error), err: error },
            `waiting for the database: ${whyWaiting(error, database)}`,
          );
          saidAt = Date.now();
        }
      }
      await sleep(wait, undefined, { signal: closing.signal }).catch(() => undefined);
      wait = Math.min(wait * 2, retryMs.max);
    }
  };

  // After the first connection the driver reconnects. A failed first attempt leaves it closed.
  const connected = until("connect", () => client.connect());
  const running = new Set<Promise<void>>([connected]);

  return {
    db,
    ping: async () => {
      try {
        await db.command({ ping: 1 }, { timeoutMS: pingMs });
        return true;
      } catch {
        return false;
      }
    },
    prepare: async (what, task) => {
      unprepared++;
      const done = connected.then(() => until(what, task));
      running.add(done);
      await done;
      running.delete(done);
      if (!closing.signal.aborted) unprepared--;
    },
    prepared: () => unprepared === 0,
    close: async () => {
      closing.abort();
      await client.close();
      await Promise.allSettled(running);
      // A connect in progress may have opened the client again.
      await client.close();
    },
  };
};
