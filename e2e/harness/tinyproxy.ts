import { once } from "node:events";
import { readFile, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { join } from "node:path";
import {
  cacheFolder,
  findBinary,
  provision,
  type RunningProcess,
  startProcess,
  unpackDebianPackages,
} from "@herald/provision";
import { eventually } from "@herald/testing";

/** The number is the version of this recipe: raise it after a change. */
const debianFolder = "tinyproxy-debian-1";

/** The tinyproxy on PATH, otherwise Debian's package, unpacked once into the user's cache. Throws the reason if neither exists. */
const findTinyproxy = async (env: NodeJS.ProcessEnv): Promise<string> => {
  const found = await findBinary("tinyproxy", env.PATH);
  if (found) return found;
  const progress = () => {};
  const folder = await provision({ cache: cacheFolder(env), name: debianFolder, progress }, async (building) => {
    await unpackDebianPackages(building, ["tinyproxy-bin"], { env, progress, ownSuite: true });
  }).catch((error: Error) => {
    throw new Error(`There is no tinyproxy on PATH, and it could not be fetched: ${error.message}`);
  });
  return join(folder, "root/usr/bin/tinyproxy");
};

export type TinyproxyRules = {
  readonly user: string;
  readonly password: string;
  /** The only ports for which it opens tunnels. Undefined: all. */
  readonly connectPorts?: readonly number[];
};

/** A real proxy on a port of this machine, which can be stopped and started with other rules. Its files are in `folder`. */
export const createTinyproxy = async (folder: string, port: number) => {
  const command = await findTinyproxy(process.env);
  const log = join(folder, "tinyproxy.log");
  let running: RunningProcess | undefined;
  const stop = async () => {
    await running?.stop();
    running = undefined;
  };
  return {
    stop,
    start: async ({ user, password, connectPorts = [] }: TinyproxyRules) => {
      await stop();
      const file = join(folder, "tinyproxy.conf");
      const lines = [
        `Port ${port}`,
        "Listen 127.0.0.1",
        "Timeout 600",
        "MaxClients 200",
        `LogFile "${log}"`,
        "LogLevel Connect",
        `BasicAuth ${user} ${password}`,
        ...connectPorts.map((one) => `ConnectPort ${one}`),
      ];
      await writeFile(file, `${lines.join("\n")}\n`);
      running = await startProcess({
        ...{ name: "tinyproxy", command, args: ["-d", "-c", file], stopSignal: "SIGTERM", stopTimeoutMs: 5_000 },
        output: { file: join(folder, "tinyproxy.out") },
      });
      await eventually(async () => {
        const socket = connect(port, "127.0.0.1");
        await once(socket, "connect");
        socket.destroy();
      });
    },
    /** The servers that it was asked for, as `host:port`. */
    asked: async (): Promise<Set<string>> => {
      const text = await readFile(log, "utf8");
      return new Set([...text.matchAll(/CONNECT (\S+) HTTP/g)].map(([, server = ""]) => server));
    },
  };
};
