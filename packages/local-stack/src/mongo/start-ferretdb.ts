import { cp, mkdir, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { freePort } from "../processes/free-port.ts";
import { type RunningProcess, startProcess } from "../processes/start-process.ts";
import { waitUntilReady } from "../processes/wait-until-ready.ts";
import { exists } from "../provision/provision.ts";
import type { RunningServer } from "../stack-options.ts";
import type { FerretPrograms } from "./fetch-ferretdb.ts";
import { ping } from "./ping.ts";
import { type RunningPostgres, startPostgres } from "./start-postgres.ts";

const readyWithinMs = 30_000;

/** FerretDB on a PostgreSQL of its own; FerretDB stops first, so that no query is cut off from below. */
export async function startFerretdb(
  programs: FerretPrograms,
  options: { dataDir: string; port: number; durable: boolean; env: NodeJS.ProcessEnv },
): Promise<Omit<RunningServer, "source">> {
  const { dataDir, port, durable, env } = options;
  const dataFolder = join(dataDir, "postgres");
  await copyTemplate(programs.template, dataFolder);
  const postgres = await startPostgres({
    bin: dirname(programs.postgres),
    dataFolder,
    logFile: join(dataDir, "postgres.log"),
    durable,
    env,
  });
  try {
    const ferretdb = await startFront(programs.ferretdb, postgres, { dataDir, port, env });
    return {
      url: ferretdb.url,
      pids: [ferretdb.process.pid, postgres.process.pid],
      ended: Promise.race([ferretdb.process.ended, postgres.process.ended]),
      stop: async () => {
        await ferretdb.process.stop();
        await postgres.stop();
      },
    };
  } catch (error) {
    await postgres.stop();
    throw error;
  }
}

/** Whole or not at all: a copy that was cut short would be taken for data. */
async function copyTemplate(template: string, dataFolder: string): Promise<void> {
  if (await exists(dataFolder)) return;
  await mkdir(dirname(dataFolder), { recursive: true, mode: 0o700 });
  const copying = `${dataFolder}.copying`;
  await rm(copying, { recursive: true, force: true });
  await cp(template, copying, { recursive: true, preserveTimestamps: true });
  await rename(copying, dataFolder);
}

async function startFront(
  binary: string,
  postgres: RunningPostgres,
  options: { dataDir: string; port: number; env: NodeJS.ProcessEnv },
): Promise<{ process: RunningProcess; url: string }> {
  const port = options.port || (await freePort());
  const process = await startProcess({
    name: "ferretdb",
    command: binary,
    args: [
      `--postgresql-url=postgres://postgres@/postgres?host=${postgres.socketFolder}`,
      `--listen-addr=127.0.0.1:${port}`,
      "--no-auth",
      "--telemetry=disable",
      `--state-dir=${options.dataDir}`,
      "--debug-addr=-",
      "--log-level=WARN",
    ],
    env: withoutOwnSettings(options.env),
    stopSignal: "SIGTERM",
    stopTimeoutMs: 10_000,
    output: { file: join(options.dataDir, "ferretdb.log") },
  });
  const url = `mongodb://127.0.0.1:${port}/`;
  await waitUntilReady(process, () => ping(url), readyWithinMs);
  return { process, url };
}

/** FerretDB and PostgreSQL's client library read variables of their own, which are meant for another server. */
function withoutOwnSettings(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !/^(FERRETDB_|OTEL_|PG)/.test(name)));
}
