import { chown, lstat, mkdir, mkdtemp, readdir, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { Client } from "pg";
import { runCommand } from "../processes/run-command.ts";
import { startProcess, waitUntilReady } from "../processes/start-process.ts";
import { removeAtExit } from "../processes/watchdog.ts";

/** Recovery after a crash takes longer than a normal start. */
const readyWithinMs = 60_000;

/**
 * Settings for DocumentDB. Measured: without `extended_rum` no index serves a sort, and the JIT costs more than it saves for these short
 * queries. FerretDB's pool and DocumentDB's own workers share the connections.
 */
const postgresSettings = {
  shared_preload_libraries: "pg_cron,pg_documentdb_core,pg_documentdb,pg_documentdb_extended_rum",
  "cron.database_name": "postgres",
  "documentdb.alternate_index_handler_name": "extended_rum",
  jit: "off",
  // Halves the time to write a record of 180 KB, such as the events of 500 new devices.
  default_toast_compression: "lz4",
  max_connections: "200",
  // Holds a million devices and their index: with the default of 128 MB a broadcast to them took 1.23 times as long a push as one to
  // 100,000, now 0.90 times. PostgreSQL takes the memory as it fills.
  shared_buffers: "512MB",
  // Two writers of one unique index sometimes deadlock. The default detects that only after a second.
  deadlock_timeout: "100ms",
};

/** For data that a crash may destroy: in tests, and while a template is made. */
const notDurable = { fsync: "off", synchronous_commit: "off", full_page_writes: "off" };

/**
 * Starts PostgreSQL on an initialised data folder. It listens only on a Unix socket in a private folder: it trusts every connection, so
 * no other user of this machine may be able to connect.
 */
export async function startPostgres(options: {
  bin: string;
  dataFolder: string;
  logFile: string;
  durable: boolean;
  env: NodeJS.ProcessEnv;
}) {
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
    // DocumentDB and pg_cron connect to their own server, by default over TCP.
    "cron.host": socketFolder,
    "documentdb.localhost_connection_string": `host=${socketFolder}`,
  };
  const flags = Object.entries(settings).flatMap(([key, value]) => ["-c", `${key}=${value}`]);
  const process = await startProcess({
    name: "postgres",
    command,
    args: [...before, "-D", dataFolder, ...flags],
    env,
    stopSignal: "SIGINT", // a fast shutdown: ends the sessions and writes a checkpoint
    stopTimeoutMs: 20_000,
    output: { file: logFile },
  });
  const stop = async () => {
    await process.stop();
    await rm(socketFolder, { recursive: true, force: true, maxRetries: 10 });
  };
  await waitUntilReady(process, () => query(socketFolder, "SELECT 1").then(() => true), readyWithinMs);
  await query(socketFolder, moveJobs(socketFolder)).catch(async (error: unknown) => {
    await stop();
    throw error;
  });
  return { process, socketFolder, stop };
}

/** The jobs that expire documents and build indexes keep the address of the start that created them, so this updates it. */
const moveJobs = (socketFolder: string) =>
  `DO $$ BEGIN IF to_regclass('cron.job') IS NOT NULL THEN UPDATE cron.job SET nodename = '${socketFolder}'; END IF; END $$`;

/** Runs one statement on a new connection. */
export async function query(socketFolder: string, sql: string): Promise<void> {
  const client = new Client({ host: socketFolder, user: "postgres", database: "postgres" });
  await client.connect();
  try {
    await client.query(sql);
  } finally {
    await client.end();
  }
}

const initdbTimeoutMs = 120_000;

/** Makes a data folder with the extension, so that each start can copy it instead of repeating this work. */
export async function makeTemplate(options: { bin: string; folder: string; env: NodeJS.ProcessEnv }): Promise<void> {
  const { bin, folder, env } = options;
  await mkdir(folder, { mode: 0o700 });
  const user = await postgresUser(env);
  await giveTo(user, folder);
  const [command = "", ...before] = [...user.before, join(bin, "initdb")];
  const flags = ["-U", "postgres", "-A", "trust", "--locale=C.UTF-8", "-E", "UTF8", "--no-sync"];
  const initdb = await runCommand(command, [...before, "-D", folder, ...flags], { env, timeoutMs: initdbTimeoutMs });
  if (!initdb.ok) throw new Error(`initdb: ${initdb.why}`);
  const postgres = await startPostgres({ bin, dataFolder: folder, logFile: `${folder}.log`, durable: false, env });
  try {
    await query(
      postgres.socketFolder,
      "CREATE EXTENSION documentdb CASCADE; CREATE EXTENSION documentdb_extended_rum;",
    );
  } finally {
    await postgres.stop();
  }
}

/** The id of `nobody`: initdb needs a user with a name, and every system has this one. */
const nobodyId = 65_534;

/** The prefix of a PostgreSQL command, and the owner of its data folder if that is not this user. */
type PostgresUser = { before: readonly string[]; owner?: number };

const systemCache = "/var/cache/herald";

const inUserNamespace = ["unshare", "--user", `--map-user=${nobodyId}`, `--map-group=${nobodyId}`, "--"];
const withRootsReach = [
  ...["setpriv", `--reuid=${nobodyId}`, `--regid=${nobodyId}`, "--clear-groups"],
  ...["--inh-caps=+dac_override", "--ambient-caps=+dac_override", "--"],
];

/**
 * PostgreSQL refuses to run as root, and another user cannot enter root's 0700 folders. In a user namespace root has another id and
 * keeps its access. Where user namespaces are disabled, as in most containers, PostgreSQL runs as another user with the capability to
 * enter folders. That is enough for its data, but not for its own program (see `programsFor`).
 */
export async function postgresUser(env: NodeJS.ProcessEnv): Promise<PostgresUser> {
  if (process.getuid?.() !== 0) return { before: [] };
  const works = async ([command = "", ...args]: readonly string[]) =>
    (await runCommand(command, [...args, "true"], { env, timeoutMs: 5_000 })).ok;
  if (await works(inUserNamespace)) return { before: inUserNamespace, owner: 0 };
  if (await works(withRootsReach)) return { before: withRootsReach, owner: nobodyId };
  throw new Error("PostgreSQL does not run as root, and neither unshare nor setpriv works here: use another user");
}

/**
 * The folder for PostgreSQL's programs: the cache folder, or another one if PostgreSQL's user cannot enter the cache. PostgreSQL checks
 * its own executable with `access`, which ignores capabilities.
 */
export async function programsFor({ owner }: PostgresUser, cache: string): Promise<string> {
  return owner !== nobodyId || (await everyoneMayEnter(cache)) ? cache : systemCache;
}

async function everyoneMayEnter(folder: string): Promise<boolean> {
  // A folder that does not exist yet will be created with this mode.
  const { mode } = await stat(folder).catch(() => ({ mode: 0o001 }));
  if ((mode & 0o001) === 0) return false;
  return dirname(folder) === folder || everyoneMayEnter(dirname(folder));
}

/** Gives the folder to the user that PostgreSQL will run as. */
export async function giveTo({ owner }: PostgresUser, folder: string): Promise<void> {
  if (owner === undefined || (await lstat(folder)).uid === owner) return;
  for (const name of await readdir(folder, { recursive: true })) await chown(join(folder, name), owner, owner);
  await chown(folder, owner, owner); // last, so that the folder's owner shows whether the change was completed
}
