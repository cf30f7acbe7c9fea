import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { MongoClient } from "mongodb";
import { DryMongoBinary, MongoBinary } from "mongodb-memory-server-core";
import { MongoBinaryDownloadUrl } from "mongodb-memory-server-core/lib/util/MongoBinaryDownloadUrl.js";
import { freePort } from "../processes/free-port.ts";
import { binaryVersion } from "../processes/run-command.ts";
import { startProcess, waitUntilReady } from "../processes/start-process.ts";
import { versions } from "../versions.ts";
import type { RunningServer } from "./resolve-program.ts";

/** A firewall that drops packets must cost seconds, not minutes. */
const siteAnswersWithinMs = 4_000;

const folderIn = (cache: string) => join(cache, `mongod-${versions.mongo}`);

/** The mongod that an earlier run downloaded, if any. */
export async function cachedMongod(cache: string): Promise<string | undefined> {
  const options = await DryMongoBinary.generateOptions({ version: versions.mongo, downloadDir: folderIn(cache) });
  return DryMongoBinary.locateBinary(options).catch(() => undefined);
}

/** Downloads mongod from MongoDB's site and verifies its checksum. Throws with the reason, within seconds if the site is unreachable. */
export async function fetchMongod(cache: string, progress: (line: string) => void): Promise<string> {
  const { os, arch } = await DryMongoBinary.generateOptions({ version: versions.mongo });
  const source = new MongoBinaryDownloadUrl({ version: versions.mongo, platform: process.platform, arch, os });
  const url = new URL(await source.getDownloadUrl());
  const answer = await fetch(url, { method: "HEAD", signal: AbortSignal.timeout(siteAnswersWithinMs) }).catch(
    (error: Error) => error,
  );
  if (answer instanceof Error) throw new Error(`${url.host} is out of reach`);
  if (!answer.ok) throw new Error(`${url.host} has no mongod ${versions.mongo} for this system (${answer.status})`);
  progress(`mongod ${versions.mongo}: downloading from ${url.host}, this once`);
  const binary = await MongoBinary.getPath({ version: versions.mongo, downloadDir: folderIn(cache) });
  // An older C library, or a processor without AVX, shows only when the program runs.
  if (!(await binaryVersion(binary)))
    throw new Error(`mongod ${versions.mongo} was downloaded but does not run on this machine`);
  return binary;
}

const readyWithinMs = 60_000;

/** Starts a standalone mongod, the smallest database that Herald supports. */
export async function startMongod(
  binary: string,
  options: { dataDir: string; port: number; env: NodeJS.ProcessEnv },
): Promise<Omit<RunningServer, "source">> {
  const dataFolder = join(options.dataDir, "mongod");
  await mkdir(dataFolder, { recursive: true, mode: 0o700 });
  const port = options.port || (await freePort());
  const process = await startProcess({
    name: "mongod",
    command: binary,
    args: ["--dbpath", dataFolder, "--bind_ip", "127.0.0.1", "--port", String(port), "--nounixsocket"],
    env: options.env,
    stopSignal: "SIGTERM",
    stopTimeoutMs: 20_000,
    output: { file: join(options.dataDir, "mongod.log") },
  });
  const url = `mongodb://127.0.0.1:${port}/`;
  await waitUntilReady(process, () => ping(url), readyWithinMs);
  return { url, pids: [process.pid], ended: process.ended, stop: process.stop };
}

/** Resolves to true when the database answers; otherwise throws with the reason. */
export async function ping(url: string): Promise<true> {
  const client = new MongoClient(url, { serverSelectionTimeoutMS: 1_000, directConnection: true });
  try {
    await client.db("admin").command({ ping: 1 });
    return true;
  } finally {
    await client.close();
  }
}
