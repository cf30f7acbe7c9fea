import { spawn } from "node:child_process";
import { freePort } from "@herald/provision";
import { eventually } from "@herald/testing";
import { must } from "../../../infra/release/must.ts";
import { type Demo, readDemo } from "../first-push.ts";

/** A start takes seconds; after a kill, messages are redelivered within half a minute. */
export const waits = { timeoutMs: 120_000 };

export type Docker = (...args: string[]) => Promise<string>;

/** Runs the engine's command line, which throws what it printed. */
export const dockerOf =
  (env: NodeJS.ProcessEnv, cwd: string): Docker =>
  (...args) =>
    must("docker", args, { cwd, env });

export type OneContainer = {
  readonly name: string;
  readonly url: string;
  /** What it has printed since its last start. */
  readonly logs: () => Promise<string>;
  readonly exec: Docker;
  readonly isRunning: () => Promise<boolean>;
  readonly isHealthy: () => Promise<boolean>;
  /** Kills it at once, as a failing host does. */
  readonly kill: () => Promise<void>;
  readonly start: () => Promise<void>;
  readonly remove: () => Promise<void>;
};

/** Starts a container of Herald on a volume, with a port of its own on this machine. */
export const startOne = async (
  docker: Docker,
  {
    name,
    image,
    volume,
    options = [],
    args = [],
  }: {
    readonly name: string;
    readonly image: string;
    readonly volume: string;
    readonly options?: readonly string[];
    readonly args?: readonly string[];
  },
): Promise<OneContainer> => {
  const port = `127.0.0.1:${await freePort()}`;
  const publish = ["-p", `${port}:8080`, "-e", `HERALD_PUBLISH_GATEWAY=${port}`, "-v", `${volume}:/data`];
  let since = "0";
  const state = async (field: string) => (await docker("inspect", "--format", `{{.State.${field}}}`, name)).trim();
  await docker("run", "--detach", "--name", name, "--stop-timeout", "60", ...publish, ...options, image, ...args);
  return {
    name,
    url: `http://${port}`,
    logs: () => docker("logs", "--since", since, name),
    exec: (...command) => docker("exec", name, ...command),
    isRunning: async () => (await state("Running")) === "true",
    isHealthy: async () => (await state("Health.Status")) === "healthy",
    kill: async () => void (await docker("kill", name)),
    start: async () => {
      since = new Date().toISOString();
      await docker("start", name);
    },
    remove: async () => void (await docker("rm", "--force", "--volumes", name)),
  };
};

/** Waits until the health check says that all services are ready. */
export const untilReady = (one: OneContainer): Promise<void> =>
  eventually(async () => {
    if (!(await one.isRunning())) throw new Error(`it has ended:\n${await one.logs()}`);
    await one.exec("/herald/infra/all/healthy");
  }, waits);

/** Sends a file to a command in a container, or receives one. Returns its exit code and what it said. */
export const pipe = async (
  env: NodeJS.ProcessEnv,
  command: string,
): Promise<{ readonly code: number | null; readonly said: string }> => {
  const child = spawn("sh", ["-c", command], { env, stdio: ["ignore", "pipe", "pipe"] });
  let said = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (text) => (said += text));
  return new Promise((resolve) => child.on("close", (code) => resolve({ code, said })));
};

/** Simulators in a container of their own: what they received outlives Herald's. Returns the container's name. */
export const startSimulators = async (docker: Docker, image: string, network: string): Promise<string> => {
  const name = `${network}-simulators`;
  const settings = {
    HERALD_SIMULATORS_HOST: "0.0.0.0",
    HERALD_SIMULATORS_PUBLIC_HOST: "simulators",
    HERALD_SIMULATORS_CONTROL_PORT: "8090",
    HERALD_SIMULATORS_APNS_PORT: "8443",
    HERALD_SIMULATORS_FCM_PORT: "8444",
    HERALD_SIMULATORS_WEBPUSH_PORT: "8445",
    HERALD_SIMULATORS_RECORD: "count",
  };
  const env = Object.entries(settings).flatMap(([key, value]) => ["-e", `${key}=${value}`]);
  const where = ["--network", network, "--network-alias", "simulators", "--entrypoint", "node"];
  await docker("run", "--detach", "--name", name, ...where, ...env, image, "/herald/simulators/dist/main.js");
  return name;
};

/** Makes a project of those simulators. */
export const makeProject = async (
  docker: Docker,
  simulators: string,
  one: OneContainer,
  token: string,
): Promise<Demo> => {
  const settings = {
    HERALD_ADMIN_TOKEN: token,
    HERALD_DEMO_ADMIN: `http://${one.name}:8080`,
    HERALD_DEMO_GATEWAY: one.url,
    HERALD_DEMO_DATA_DIR: "/tmp",
    HERALD_DEMO_SIMULATORS: "http://simulators:8090",
  };
  const env = Object.entries(settings).flatMap(([key, value]) => ["-e", `${key}=${value}`]);
  return readDemo(await docker("exec", ...env, simulators, "node", "/herald/simulators/dist/demo.js"));
};
