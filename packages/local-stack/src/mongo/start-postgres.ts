import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client } from "pg";
import { type RunningProcess, startProcess } from "../processes/start-process.ts";
import { waitUntilReady } from "../processes/wait-until-ready.ts";
import { removeAtExit } from "../processes/watchdog.ts";
import { giveTo, postgresUser } from "./postgres-user.ts";

/** Reading back after a crash takes longer than a start in good order. */
const readyWithinMs = 60_000;

/**
 * What DocumentDB needs, with the choices that were measured: without `extended_rum` a sort is never served by an index,
 * and the JIT costs more than these short queries can win back. FerretDB's pool and DocumentDB's own workers share the
 * connections.
 */
const postgresSettings = {
  shared_preload_libraries: "pg_cron,pg_documentdb_core,pg_documentdb,pg_documentdb_extended_rum",
  "cron.database_name": "postgres",
  "documentdb.alternate_index_handler_name": "extended_rum",
  jit: "off",
  max_connections: "200",
  // Two writers of one unique index deadlock at times; the default finds out after a second.
  deadlock_timeout: "100ms",
};

/** For data that may be lost in a crash: tests, and the making of a template. */
const notDurable = { fsync: "off", synchronous_commit: "off", full_page_writes: "off" };

export type RunningPostgres = { process: RunningProcess; socketFolder: string; stop: () => Promise<void> };

/**
 * Starts PostgreSQL on an initialised data folder. It listens on a Unix socket in a private folder only: it trusts who
 * connects, so no other user of this machine may be able to.
 */
export async function startPostgres(options: {
  bin: string;
  dataFolder: string;
  logFile: string;
  durable: boolean;
  env: NodeJS.ProcessEnv;
}): Promise<RunningPostgres> {
  const { bin, dataFolder, logFile, durable, env } = options;
  const user = await postgresUser(env);
  await giveTo(user, dataFolder);
  const [command = "", ...before] = [...user.before, join(bin, "postgres")];
  // In the system's temporary folder, because a socket's path is limited to about 100 characters.
  const socketFolder = await mkdtemp(join(tmpdir(), "herald-pg-"));
  removeAtExit(socketFolder);
  await giveTo(user, socketFolder);
  const settings = {
    ...postgresSettings,
    ...(durable ? {} : notDurable),
    listen_addresses: "",
    unix_socket_directories: socketFolder,
    // DocumentDB and pg_cron connect to their own server, over TCP unless told otherwise.
    "cron.host": socketFolder,
    "documentdb.localhost_connection_string": `host=${socketFolder}`,
  };
  const flags = Object.entries(settings).flatMap(([key, value]) => ["-c", `${key}=${value}`]);
  const process = await startProcess({
    name: "postgres",
    command,
    args: [...before, "-D", dataFolder, ...flags],
    env,
    stopSignal: "SIGINT", // fast: ends the sessions, writes a checkpoint
    stopTimeoutMs: 20_000,
    output: { file: logFile },
  });
  const stop = async () => {
    await process.stop();
    await rm(socketFolder, { recursive: true, force: true });
  };
  await waitUntilReady(process, () => query(socketFolder, "SELECT 1").then(() => true), readyWithinMs);
  await query(socketFolder, moveJobs(socketFolder)).catch(async (error: unknown) => {
    await stop();
    throw error;
  });
  return { process, socketFolder, stop };
}

/** The jobs that expire documents and build indexes keep the address they were made with, which was another start's. */
const moveJobs = (socketFolder: string) =>
  `DO $$ BEGIN IF to_regclass('cron.job') IS NOT NULL THEN UPDATE cron.job SET nodename = '${socketFolder}'; END IF; END $$`;

/** One statement over a connection of its own. */
export async function query(socketFolder: string, sql: string): Promise<void> {
  const client = new Client({ host: socketFolder, user: "postgres", database: "postgres" });
  await client.connect();
  try {
    await client.query(sql);
  } finally {
    await client.end();
  }
}
