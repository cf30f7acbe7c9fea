import { once } from "node:events";
import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { join } from "node:path";
import { nothingAnswered, sourceOf } from "../chain.ts";
import { type RunningProcess, startProcess } from "../processes/start-process.ts";
import { waitUntilReady } from "../processes/wait-until-ready.ts";
import { neverEnds, type RunningServer, type StackOptions } from "../stack-options.ts";
import { natsConfig } from "./nats-config.ts";
import { natsRemedy, resolveNats } from "./resolve-nats.ts";

export type NatsOptions = StackOptions & {
  /** Added to the server's configuration file, for users and permissions. */
  extraConfig?: string;
  /** Write every message to disk before it is acknowledged (default), as production does. */
  syncAlways?: boolean;
};

/** Large stores are read back before the server listens. */
const readyWithinMs = 60_000;

/** A nats-server with JetStream, from the first step of the chain that answers. */
export async function startNats(options: NatsOptions): Promise<RunningServer> {
  const { choice, attempts } = await resolveNats(options);
  if (!choice) throw nothingAnswered("A nats-server", attempts, natsRemedy);
  const source = sourceOf(attempts);
  if (choice.kind === "url") return { url: choice.url, source, pids: [], ended: neverEnds, stop: async () => {} };
  if (choice.kind === "container") return { ...choice.service, source, pids: [], ended: neverEnds };
  const running = await startNatsServer(choice.path, options);
  return {
    url: `nats://127.0.0.1:${running.port}`,
    source,
    pids: [running.process.pid],
    ended: running.process.ended,
    stop: async () => {
      await running.process.stop();
    },
  };
}

/** Runs one binary; what tests that kill, freeze and restart it hold in their hands. */
export async function startNatsServer(
  binary: string,
  options: Pick<NatsOptions, "dataDir" | "port" | "extraConfig" | "syncAlways">,
): Promise<{ process: RunningProcess; port: number }> {
  const { dataDir, port, extraConfig = "", syncAlways = true } = options;
  await mkdir(dataDir, { recursive: true, mode: 0o700 });
  const configFile = join(dataDir, "nats-server.conf");
  await writeFile(configFile, natsConfig({ port, folder: dataDir, syncAlways, extra: extraConfig }), { mode: 0o600 });
  const process = await startProcess({
    name: "nats-server",
    command: binary,
    args: ["-c", configFile],
    stopSignal: "SIGINT", // an orderly end at once; SIGTERM is the same with exit code 1
    stopTimeoutMs: 15_000,
    output: { file: join(dataDir, "nats-server.log") },
  });
  const portsFile = join(dataDir, `nats-server_${process.pid}.ports`);
  const actual = await waitUntilReady(process, () => listeningPort(portsFile), readyWithinMs);
  await rm(portsFile, { force: true });
  return { process, port: actual };
}

/** The server writes its ports when all listeners are up, and greets a client when it serves. */
async function listeningPort(portsFile: string): Promise<number | undefined> {
  const text = await readFile(portsFile, "utf8").catch(() => "");
  const port = Number(/"nats:\/\/[^"]*:(\d+)"/.exec(text)?.[1]);
  if (!port) return undefined;
  const socket = connect(port, "127.0.0.1");
  try {
    const [greeting] = await once(socket, "data", { signal: AbortSignal.timeout(2_000) });
    return String(greeting).startsWith("INFO ") ? port : undefined;
  } finally {
    socket.destroy();
  }
}
