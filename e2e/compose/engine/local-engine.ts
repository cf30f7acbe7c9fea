import { access, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { runCommand, startProcess } from "@herald/provision";
import { type EnginePrograms, type Fetch, fetchEnginePrograms } from "./programs.ts";

const readyWithinMs = 60_000;
/** The engine stops its containers before it ends. */
const stopWithinMs = 60_000;

export type LocalEngine = {
  readonly programs: EnginePrograms;
  /** The environment for `docker` and `docker compose`. */
  readonly env: NodeJS.ProcessEnv;
  /** Stops the engine, and removes its images, containers and volumes. */
  readonly stop: () => Promise<void>;
};

/** Saves the network settings that dockerd changes and does not restore. Returns a function that restores them. */
const keepNetwork = async (env: NodeJS.ProcessEnv): Promise<() => Promise<void>> => {
  const forwarding = "/proc/sys/net/ipv4/ip_forward";
  const [rules, forwards, bridge] = await Promise.all([
    runCommand("xtables-nft-multi", ["iptables-save"], { env, timeoutMs: 10_000 }),
    readFile(forwarding, "utf8"),
    access("/sys/class/net/docker0").then(
      () => true,
      () => false,
    ),
  ]);
  return async () => {
    if (!bridge) await runCommand("ip", ["link", "delete", "docker0"], { env, timeoutMs: 10_000 });
    // Tables without rules accept everything.
    const before = {
      filter: "*filter\n:INPUT ACCEPT\n:FORWARD ACCEPT\n:OUTPUT ACCEPT\nCOMMIT\n",
      nat: "*nat\n:PREROUTING ACCEPT\n:INPUT ACCEPT\n:OUTPUT ACCEPT\n:POSTROUTING ACCEPT\nCOMMIT\n",
    };
    const text = Object.entries(before).map(([table, none]) => (rules.stdout.includes(`*${table}`) ? "" : none));
    const restore = [
      "-c",
      'printf %s "$1" | xtables-nft-multi iptables-restore',
      "restore",
      rules.stdout + text.join(""),
    ];
    await runCommand("sh", restore, { env, timeoutMs: 10_000 });
    await writeFile(forwarding, forwards);
  };
};

/** Unmounts file systems that a killed dockerd left in its folder: deleting the folder would delete the mounted files. */
const unmountBelow = async (folder: string, env: NodeJS.ProcessEnv): Promise<void> => {
  const mounts = (await readFile("/proc/self/mounts", "utf8")).split("\n").map((line) => line.split(" ")[1] ?? "");
  for (const mount of mounts.filter((path) => path.startsWith(`${folder}/`)).toReversed())
    await runCommand("umount", [mount], { env, timeoutMs: 10_000 });
};

/**
 * Starts a Docker engine for this test, with data, sockets and network state in a temporary folder, on machines without an engine.
 * Needs root, Debian's packages and Go. Throws the reason if one of them is missing.
 */
export const startLocalEngine = async ({ env, progress }: Fetch): Promise<LocalEngine> => {
  if (process.getuid?.() !== 0) throw new Error("a Docker engine of its own needs root");
  const programs = await fetchEnginePrograms({ env, progress });
  const folder = await mkdtemp(join(tmpdir(), "herald-engine-"));
  const socket = `unix://${join(folder, "docker.sock")}`;
  await mkdir(join(folder, "exec"));
  const library = join(programs.root, "usr/lib", process.arch === "arm64" ? "aarch64-linux-gnu" : "x86_64-linux-gnu");
  const own = { ...env, PATH: `${programs.bin}:${env.PATH}` };
  // iptables loads its extensions and libraries from the unpacked packages.
  const engineEnv = { ...own, LD_LIBRARY_PATH: library, XTABLES_LIBDIR: join(library, "xtables") };
  const restoreNetwork = await keepNetwork(engineEnv);
  progress("starting dockerd");
  const dockerd = await startProcess({
    name: "dockerd",
    command: join(programs.root, "usr/sbin/dockerd"),
    args: [
      "--data-root",
      join(folder, "data"),
      "--exec-root",
      join(folder, "exec"),
      "--pidfile",
      join(folder, "docker.pid"),
      "--host",
      socket,
    ],
    env: engineEnv,
    stopSignal: "SIGTERM",
    stopTimeoutMs: stopWithinMs,
    output: { file: join(folder, "dockerd.log") },
  });
  const stop = async () => {
    await dockerd.stop();
    await restoreNetwork();
    await unmountBelow(folder, env);
    await rm(folder, { recursive: true, force: true });
  };
  const clientEnv = { ...own, DOCKER_HOST: socket, DOCKER_CONFIG: programs.config, DOCKER_BUILDKIT: "1" };
  const deadline = Date.now() + readyWithinMs;
  for (;;) {
    const { ok, why } = await runCommand("docker", ["version"], { env: clientEnv, timeoutMs: 5_000 });
    if (ok) return { programs, env: clientEnv, stop };
    if (dockerd.hasExited() || Date.now() > deadline) {
      const lastWords = await dockerd.lastWords();
      await stop();
      throw new Error(`dockerd does not answer: ${why}\n${lastWords}`);
    }
    await delay(200);
  }
};
