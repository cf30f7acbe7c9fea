import { setTimeout as sleep } from "node:timers/promises";
import { exportsTraces, type Logger } from "@herald/kit";
import { type Db, MongoClient } from "mongodb";
import { traceCommands } from "./trace-commands.ts";
import { whyWaiting } from "./why-waiting.ts";

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
/** How often the log repeats that it waits. */
const reminderMs = 30_000;

export type MongoHandle = {
  readonly db: Db;
  /** Whether the database answers, within a second. Never throws. */
  readonly ping: () => Promise<boolean>;
  /**
   * Runs a task that needs the database, such as creating indexes, until it succeeds. Resolves then, or when the handle is closed.
   */
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
  const client = new MongoClient(url, {
    appName,
    serverSelectionTimeoutMS: serverSelectionMs,
    connectTimeoutMS: connectMs,
    socketTimeoutMS: socketMs,
    maxPoolSize: poolSize,
    waitQueueTimeoutMS: waitQueueMs,
    writeConcern: { w: "majority", journal: true },
    readPreference: "primary",
    // The driver leaves it out by itself where the server is a standalone one, as FerretDB says it is.
    retryWrites: true,
    // A field that is undefined is a field that is not there, as in JSON.
    ignoreUndefined: true,
    // It reads each reply once more, which only spans are worth.
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

  // Once connected the driver reconnects by itself; before that a failed attempt leaves it closed.
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
      // A connect that was under way has opened it again.
      await client.close();
    },
  };
};
