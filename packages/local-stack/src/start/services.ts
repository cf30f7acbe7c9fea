import { join } from "node:path";
import { bundleOf, type ProgramName } from "../bundle/bundle.ts";
import { startProcess } from "../processes/start-process.ts";
import type { Part, Started } from "./keep-running.ts";
import type { NatsLogin } from "./nats-users.ts";
import type { Ports } from "./ports.ts";
import type { Secrets } from "./secrets.ts";

export const serviceNames = ["gateway", "registry", "dispatch", "analytics"] as const;

/** A service has 25 s to finish what it holds; then it is killed. */
const serviceStopTimeoutMs = 30_000;
/** The exit code by which a service says that its configuration is wrong: starting it again will not help. */
const wrongConfiguration = 78;
/** Requests by client identity and refused credentials, per address and 10 s: 1,000 a second, for load tests on one machine. */
const localLimit = "10000";
/** A benchmark has one token and one project: their limits are what the machine can do. */
const noLimit = "10000000";

export type Addresses = {
  natsUrl: string;
  /** Copies of every stream: 1, or 3 where somebody gave a cluster. */
  natsReplicas: string;
  mongoUrl: string;
};

/**
 * The environment of the services: what the caller's own environment says, completed with defaults for one machine, and
 * with the addresses and ports of this start, which nothing may contradict.
 */
export function serviceEnvironment(
  env: NodeJS.ProcessEnv,
  { natsUrl, natsReplicas, mongoUrl }: Addresses,
  ports: Ports,
  secrets: Secrets,
): NodeJS.ProcessEnv {
  const defaults = {
    HERALD_ADMIN_TOKEN: secrets.adminToken,
    HERALD_OPEN_KEYS: secrets.openKeys,
    HERALD_REGISTRY_MASTER_KEYS: secrets.masterKeys,
    HERALD_DISPATCH_MASTER_KEYS: secrets.masterKeys,
    HERALD_DISPATCH_CUSTOM_ENDPOINTS: "true", // the simulators are not where Apple and Google are
    HERALD_ANALYTICS_MASTER_KEYS: secrets.masterKeys,
    HERALD_ANALYTICS_WEBHOOKS_ANY_HOST: "true", // webhooks are tried with a receiver on this machine
    HERALD_GATEWAY_LIMIT_FAILURES: localLimit,
    HERALD_GATEWAY_LIMIT_CLIENTS: localLimit,
    HERALD_GATEWAY_LIMIT_NEW_DEVICES: noLimit,
    HERALD_GATEWAY_LIMIT_DEVICE: localLimit,
    HERALD_GATEWAY_LIMIT_TOKEN: noLimit,
    HERALD_GATEWAY_LIMIT_PROJECT: noLimit,
    HERALD_GATEWAY_QUOTA_SENDS: noLimit,
    HERALD_GATEWAY_QUOTA_DRY_RUNS: noLimit,
  };
  const fixed: NodeJS.ProcessEnv = {
    HERALD_NATS_URL: natsUrl,
    HERALD_MONGO_URL: mongoUrl,
    HERALD_NATS_REPLICAS: natsReplicas,
  };
  for (const name of serviceNames) {
    const variable = `HERALD_${name.toUpperCase()}`;
    fixed[`${variable}_PORT`] = String(ports[name]);
    fixed[`${variable}_METRICS_PORT`] = String(ports[`${name}Metrics`]);
  }
  return { ...defaults, ...env, ...fixed };
}

/** That of one part, as the broker's user that it is. */
export function loggedIn(env: NodeJS.ProcessEnv, { user, password }: NatsLogin): NodeJS.ProcessEnv {
  return { ...env, HERALD_NATS_USER: user, HERALD_NATS_PASSWORD: password };
}

/**
 * What lives for one batch must die young. A young generation of up to 16 MB outlives the pushes in flight: with 8 most of them grow old,
 * for a third more memory and a fifth more CPU, and with Node's default of 64 MB and more each service holds half as much memory again.
 * It starts small and grows when it is needed: having that size from the start costs an idle service 10 MB and saves no CPU. And what
 * dies young must be born young: seeing the pushes of a broadcast outlive a collection or two, V8 would make their like where the old are
 * kept, for an eighth more CPU and twice the memory. What grows old all the same, a batch and its outcomes, is collected when the old
 * generation has doubled, and first at 32 MB: left to itself V8 lets it grow to four times what lives.
 */
const nodeArgs = (root: string, program: ProgramName) => [
  "--max-semi-space-size=16",
  "--no-allocation-site-pretenuring",
  "--initial-old-space-size=32",
  "--heap-growing-percent=100",
  join(root, bundleOf(program)),
];

export type ProgramOptions = {
  root: string;
  /** A program that is bundled. */
  program: ProgramName;
  env: NodeJS.ProcessEnv;
  logLine: (name: string, line: string) => void;
};

/** One of Herald's programs, as a process of its own with its lines in the common log. `optionsOf` is called for each start. */
export function programPart(name: string, optionsOf: () => ProgramOptions): Part {
  return { name, start: () => startProgram(name, optionsOf()) };
}

async function startProgram(name: string, { root, program, env, logLine }: ProgramOptions): Promise<Started> {
  const running = await startProcess({
    name,
    command: process.execPath,
    args: nodeArgs(root, program),
    cwd: root,
    // One arena for all threads: each of V8's helpers would keep some memory for itself, 3 MB in all.
    env: { MALLOC_ARENA_MAX: "1", ...env },
    stopSignal: "SIGTERM",
    stopTimeoutMs: serviceStopTimeoutMs,
    output: { onLine: (line) => logLine(name, line) },
  });
  return {
    pids: [running.pid],
    ended: Promise.all([running.ended, running.exited]).then(([why, { code }]) => ({
      why,
      again: code !== wrongConfiguration,
    })),
    stop: running.stop,
  };
}

/** Runs a program to its end, which must be a good one. */
export async function runProgram(name: string, options: ProgramOptions): Promise<void> {
  const running = await startProgram(name, options);
  const { why } = await running.ended;
  if (!why.endsWith("exit code 0")) throw new Error(why);
}
