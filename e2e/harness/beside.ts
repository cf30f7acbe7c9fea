import { join } from "node:path";
import { bundle, bundleOf } from "@herald/bundle";
import { freePort, startProcess } from "@herald/provision";
import { eventually, expectStatus, type HttpAnswer, request } from "@herald/testing";
import { type ServiceName, type System, serviceNames } from "./system.ts";

export type Beside = {
  readonly url: string;
  readonly pid: number;
  probe(path: "/livez" | "/readyz"): Promise<HttpAnswer>;
  ready(): Promise<void>;
  /** Stops it gracefully. Resolves to its exit code and the duration. */
  stop(): Promise<{ code: number | null; tookMs: number }>;
};

const root = join(import.meta.dirname, "../..");

/** Starts another instance of a service in the same system, from this tree or another. It may not be ready yet. */
export async function startBeside(
  { environmentOf, logs }: Pick<System, "environmentOf" | "logs">,
  name: ServiceName,
  { tree = root, env = {} }: { tree?: string; env?: NodeJS.ProcessEnv } = {},
): Promise<Beside> {
  const [port, metricsPort] = [await freePort(), await freePort()];
  await bundle(tree, [name]);
  let last = "";
  const running = await startProcess({
    name,
    command: process.execPath,
    args: [join(tree, bundleOf(name))],
    cwd: tree,
    env: {
      ...environmentOf(name),
      HERALD_PORT: String(port),
      HERALD_METRICS_PORT: String(metricsPort),
      ...env,
    },
    stopSignal: "SIGTERM",
    stopTimeoutMs: 40_000, // past the services' own deadline of 30 s
    output: {
      onLine: (line) => {
        last = line;
        logs.add(`${name}-beside`, line);
      },
    },
  });
  const url = `http://127.0.0.1:${port}`;
  const probe: Beside["probe"] = (path) => {
    if (running.hasExited()) throw new Error(`${name} has ended: ${last}`);
    return request(url, `GET ${path}`);
  };
  return {
    url,
    pid: running.pid,
    probe,
    ready: async () => {
      const ended = running.exited.then(() => Promise.reject(new Error(`${name} has ended: ${last}`)));
      const ready = eventually(async () => expectStatus(await probe("/readyz"), 200), { timeoutMs: 60_000 });
      await Promise.race([ready, ended]);
    },
    stop: async () => {
      const from = performance.now();
      const { code } = await running.stop();
      return { code, tookMs: performance.now() - from };
    },
  };
}

/** Another replica of each service. Resolves to the URL of the second gateway. */
export const startReplicas = async (
  system: System,
  defer: (close: () => Promise<unknown>) => void,
): Promise<string> => {
  let url = "";
  for (const name of serviceNames) {
    const beside = await startBeside(system, name);
    defer(() => beside.stop());
    await beside.ready();
    if (name === "gateway") ({ url } = beside);
  }
  return url;
};
