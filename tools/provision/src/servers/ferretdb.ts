import { existsSync } from "node:fs";
import { copyFile, cp, mkdir, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { librarySubfolders, unpackDebianPackages, whyNoDebian, wrapProgram } from "../fetch/debian.ts";
import { provision } from "../fetch/provision.ts";
import { goInstall } from "../fetch/toolchains.ts";
import { freePort } from "../processes/free-port.ts";
import { startProcess, waitUntilReady } from "../processes/start-process.ts";
import { ping } from "./mongod.ts";
import { makeTemplate, query, startPostgres } from "./postgres.ts";
import type { RunningServer } from "./resolve-program.ts";

const ferretdbVersion = "2.7.0";
const goModule = `github.com/FerretDB/FerretDB/v2/cmd/ferretdb@v${ferretdbVersion}`;
const ferretdbFolder = `ferretdb-${ferretdbVersion}`;
/** The last number is the version of this recipe. Increase it when the recipe builds something else from the packages. */
const postgresFolder = "postgresql-18-documentdb-1";
const postgresLib = "usr/lib/postgresql/18";
/** What belongs to an installed system, to PostGIS' rasters and solids, and to its coordinate systems: 87 of 142 MB. */
const neverLoaded =
  /^(lib(gdal|sfcgal|perl)[\d.]+|postgresql-(client-)?common|ssl-cert|locales|debconf|tzdata|proj-data|perl|systemd)$/;

/** FerretDB, its PostgreSQL with DocumentDB, and an initialised data folder to copy. */
export type FerretPrograms = { ferretdb: string; postgres: string; template: string };

type FetchOptions = { cache: string; env: NodeJS.ProcessEnv; progress: (line: string) => void };

const programsIn = (cache: string): FerretPrograms => ({
  ferretdb: join(cache, ferretdbFolder, "ferretdb"),
  postgres: join(cache, postgresFolder, "root", postgresLib, "bin/postgres"),
  template: join(cache, postgresFolder, "template"),
});

/** The programs that an earlier run fetched, if any. */
export function cachedFerret(cache: string): FerretPrograms | undefined {
  const programs = programsIn(cache);
  return existsSync(programs.ferretdb) && existsSync(programs.template) ? programs : undefined;
}

/** Fetches FerretDB, which mostly compiles, and PostgreSQL, which mostly downloads, at the same time. Throws with the reason. */
export async function fetchFerret(options: FetchOptions): Promise<FerretPrograms> {
  const missing = await whyNoDebian(options.env);
  if (missing) throw new Error(`PostgreSQL with DocumentDB comes from Debian packages, but ${missing}`);
  const results = await Promise.allSettled([fetchFerretdb(options), fetchPostgres(options)]);
  const reasons = results.flatMap((result) => (result.status === "rejected" ? [(result.reason as Error).message] : []));
  if (reasons.length > 0) throw new Error(reasons.join("; "));
  return programsIn(options.cache);
}

function fetchFerretdb({ cache, env, progress }: FetchOptions): Promise<string> {
  return provision({ cache, name: ferretdbFolder, progress }, (building) => {
    const say = (line: string) => progress(`FerretDB ${ferretdbVersion}: ${line}`);
    say("go install, about a minute, this once");
    return goInstall(goModule, building, { env, progress: say });
  });
}

function fetchPostgres({ cache, env, progress }: FetchOptions): Promise<string> {
  return provision({ cache, name: postgresFolder, progress }, async (building) => {
    const say = (line: string) => progress(`PostgreSQL 18 with DocumentDB: ${line}`);
    say("about 55 MB, half a minute, this once");
    const packages = ["postgresql-18-documentdb"];
    const root = await unpackDebianPackages(building, packages, { env, progress: say, without: neverLoaded });
    const libraries = [join(postgresLib, "lib"), ...(await librarySubfolders(root, ["blas", "lapack"]))];
    // initdb looks for postgres in its own folder, so wrapping these two is enough.
    for (const program of ["postgres", "initdb"]) await wrapProgram(root, join(postgresLib, "bin", program), libraries);
    const extensions = join(root, "usr/share/postgresql/18/extension");
    await copyFile(join(extensions, "postgis-3.control"), join(extensions, "postgis.control")); // a package script's task
    say("creating a data folder with the extension");
    const template = join(building, "template.new");
    await makeTemplate({ bin: join(root, postgresLib, "bin"), folder: template, env });
    await rename(template, join(building, "template"));
  });
}

const readyWithinMs = 30_000;

/** The one user of a server that asks for a password. */
const onlyUser = "herald";
const makeUser = `DO $$ BEGIN IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '${onlyUser}') THEN CREATE ROLE ${onlyUser} LOGIN IN ROLE documentdb_admin_role; END IF; END $$`;

/** Starts FerretDB on its own PostgreSQL; `password`: only its user gets in, by this password. FerretDB stops first, so that no query loses its database. */
export async function startFerretdb(
  programs: FerretPrograms,
  options: { dataDir: string; port: number; durable: boolean; password?: string; env: NodeJS.ProcessEnv },
): Promise<Omit<RunningServer, "source">> {
  const { dataDir, durable, password, env } = options;
  const port = options.port || (await freePort());
  const url = `mongodb://${password === undefined ? "" : `${onlyUser}:${password}@`}127.0.0.1:${port}/`;
  const dataFolder = join(dataDir, "postgres");
  await copyTemplate(programs.template, dataFolder);
  const postgres = await startPostgres({
    bin: dirname(programs.postgres),
    dataFolder,
    logFile: join(dataDir, "postgres.log"),
    durable,
    env,
  });
  const setPassword = (next: string) => query(postgres.socketFolder, `ALTER ROLE ${onlyUser} PASSWORD '${next}'`);
  try {
    if (password !== undefined) {
      await query(postgres.socketFolder, makeUser);
      await setPassword(password);
    }
    const ferretdb = await startProcess({
      name: "ferretdb",
      command: programs.ferretdb,
      args: [
        `--postgresql-url=postgres://postgres@/postgres?host=${postgres.socketFolder}`,
        `--listen-addr=127.0.0.1:${port}`,
        ...(password === undefined ? ["--no-auth"] : []),
        "--telemetry=disable",
        `--state-dir=${dataDir}`,
        "--debug-addr=-",
        "--log-level=WARN",
      ],
      env: withoutOwnSettings(env),
      stopSignal: "SIGTERM",
      stopTimeoutMs: 10_000,
      output: { file: join(dataDir, "ferretdb.log") },
    });
    await waitUntilReady(ferretdb, () => ping(url), readyWithinMs);
    return {
      url,
      pids: [ferretdb.pid, postgres.process.pid],
      ended: Promise.race([ferretdb.ended, postgres.process.ended]),
      ...(password !== undefined && { setPassword }),
      stop: async () => {
        await ferretdb.stop();
        await postgres.stop();
      },
    };
  } catch (error) {
    await postgres.stop();
    throw error;
  }
}

/** Copies the template atomically: an incomplete copy would look like valid data. */
async function copyTemplate(template: string, dataFolder: string): Promise<void> {
  if (existsSync(dataFolder)) return;
  await mkdir(dirname(dataFolder), { recursive: true, mode: 0o700 });
  const copying = `${dataFolder}.copying`;
  await rm(copying, { recursive: true, force: true });
  await cp(template, copying, { recursive: true, preserveTimestamps: true });
  await rename(copying, dataFolder);
}

/** Removes variables that FerretDB and PostgreSQL's client library would read, because they are meant for another server. */
function withoutOwnSettings(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !/^(FERRETDB_|OTEL_|PG)/.test(name)));
}
