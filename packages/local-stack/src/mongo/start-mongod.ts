import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { freePort } from "../processes/free-port.ts";
import { startProcess } from "../processes/start-process.ts";
import { waitUntilReady } from "../processes/wait-until-ready.ts";
import type { RunningServer } from "../stack-options.ts";
import { ping } from "./ping.ts";

const readyWithinMs = 60_000;

/** A standalone mongod, the smallest of what Herald runs on. */
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
  return {
    url,
    pids: [process.pid],
    ended: process.ended,
    stop: async () => {
      await process.stop();
    },
  };
}
