import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { join } from "node:path";
import { unpackDebianPackages, whyNoDebian, wrapProgram } from "../fetch/debian.ts";
import { cacheFolder, provision } from "../fetch/provision.ts";
import { goAccepted, goInstall } from "../fetch/toolchains.ts";
import { binaryVersion, isAtLeast } from "../processes/run-command.ts";
import { startProcess, waitUntilReady } from "../processes/start-process.ts";
import { versions } from "../versions.ts";
import { type FetchOptions, type StackOptions, type StepAnswer, serverOf } from "./resolve-program.ts";

/** Scheduled messages and `allow_atomic` came with 2.12. */
const minVersion = "2.12";
const goModule = `github.com/nats-io/nats-server/v2@v${versions.nats}`;
const goFolder = `nats-server-${versions.nats}`;
/** The number is the version of this recipe. Increase it when Herald needs a newer nats-server than earlier recipes fetched. */
const debianFolder = "nats-server-debian-1";
const debianProgram = "usr/sbin/nats-server";

export const natsRemedy = `One of these is enough: a running Docker engine; ${goAccepted}; nats-server ≥ ${minVersion} on PATH; HERALD_NATS_URL of a server with JetStream.`;

type OwnNats = { kind: "binary"; path: string };
const own = (path: string): OwnNats => ({ kind: "binary", path });

/** Debian's package first: compiling takes a minute of a processor's time. */
async function fetched(options: FetchOptions): Promise<StepAnswer<OwnNats>> {
  const cache = cacheFolder(options.env);
  const fromGo = join(cache, goFolder, "nats-server");
  const fromDebian = join(cache, debianFolder, "root", debianProgram);
  for (const path of [fromGo, fromDebian]) {
    if (existsSync(path)) return { found: own(path), why: `fetched earlier: ${path}` };
  }
  if (options.onlyTell)
    return { found: own(fromDebian), why: `would be fetched: from Debian, else go install ${goModule}` };
  try {
    await fetchFromDebian(cache, options);
    return { found: own(fromDebian), why: "fetched: Debian package nats-server" };
  } catch (withDebian) {
    try {
      await fetchWithGo(cache, options);
      return { found: own(fromGo), why: `fetched: go install ${goModule}` };
    } catch (withGo) {
      return { why: `${(withDebian as Error).message}; ${(withGo as Error).message}` };
    }
  }
}

const fetchWithGo = (cache: string, { env, progress }: FetchOptions): Promise<string> =>
  provision({ cache, name: goFolder, progress }, (building) => {
    const say = (line: string) => progress(`nats-server ${versions.nats}: ${line}`);
    say("go install, about half a minute, this once");
    return goInstall(goModule, building, { env, progress: say });
  });

async function fetchFromDebian(cache: string, { env, progress }: FetchOptions): Promise<void> {
  const missing = await whyNoDebian(env);
  if (missing) throw new Error(missing);
  await provision({ cache, name: debianFolder, progress }, async (building) => {
    const say = (line: string) => progress(`nats-server: ${line}`);
    const root = await unpackDebianPackages(building, ["nats-server"], { env, progress: say });
    await wrapProgram(root, debianProgram);
    const version = await binaryVersion(join(root, debianProgram));
    if (!version || !isAtLeast(version, minVersion))
      throw new Error(`Debian's nats-server is ${version ?? "unusable"}`);
  });
}

type NatsOptions = StackOptions & {
  /** Appended to the server's configuration file, for users and permissions. */
  extraConfig?: string;
  /** Write every message to disk before it is acknowledged (default), as production does. */
  syncAlways?: boolean;
};

/** The server reads its stores before it listens, which takes long for large ones. */
const readyWithinMs = 60_000;

/** A nats-server with JetStream. */
export const { resolve: resolveNats, start: startNats } = serverOf<OwnNats, NatsOptions>({
  what: "nats-server",
  remedy: natsRemedy,
  variable: "HERALD_NATS_URL",
  binary: "nats-server",
  minimum: minVersion,
  own,
  fetched,
  start: async ({ path }, options) => {
    const { process, port } = await startNatsServer(path, options);
    return { url: `nats://127.0.0.1:${port}`, pids: [process.pid], ended: process.ended, stop: process.stop };
  },
});

/** Runs the given binary, for tests that kill, freeze and restart it. */
export async function startNatsServer(
  binary: string,
  options: Pick<NatsOptions, "dataDir" | "port" | "extraConfig" | "syncAlways">,
) {
  const { dataDir } = options;
  await mkdir(dataDir, { recursive: true, mode: 0o700 });
  const configFile = join(dataDir, "nats-server.conf");
  await writeFile(configFile, natsConfig(options), { mode: 0o600 });
  const process = await startProcess({
    name: "nats-server",
    command: binary,
    args: ["-c", configFile],
    stopSignal: "SIGINT", // a graceful stop; SIGTERM does the same with exit code 1
    stopTimeoutMs: 15_000,
    output: { file: join(dataDir, "nats-server.log") },
  });
  const portsFile = join(dataDir, `nats-server_${process.pid}.ports`);
  const actual = await waitUntilReady(process, () => listeningPort(portsFile), readyWithinMs);
  await rm(portsFile, { force: true });
  return {
    process,
    port: actual,
    /** Has the running server read its configuration again, with another `extraConfig`. */
    reload: async (extraConfig: string) => {
      await writeFile(configFile, natsConfig({ ...options, extraConfig }), { mode: 0o600 });
      process.signal("SIGHUP");
    },
  };
}

/** Appends `extraConfig` unchanged. */
const natsConfig = ({ dataDir, port, extraConfig = "", syncAlways = true }: Parameters<typeof startNatsServer>[1]) =>
  `# Written at each start; changes are lost.
listen: "127.0.0.1:${port === 0 ? -1 : port}"
server_name: herald-local
ports_file_dir: ${JSON.stringify(dataDir)}
jetstream {
  store_dir: ${JSON.stringify(dataDir)}
  # Streams reserve HERALD_NATS_STORAGE and use little of it; a small disk must not refuse them.
  max_file_store: 64GB
  sync_interval: ${syncAlways ? "always" : '"2m"'}
}
${extraConfig}
`;

/** The server writes its ports when all listeners are up, and sends INFO to a client when it is ready. */
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
