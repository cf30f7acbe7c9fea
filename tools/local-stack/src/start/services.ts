import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { bundleOf, type ProgramName } from "@herald/bundle";
import type { HeraldAdmin } from "@herald/client";
import { startProcess } from "@herald/provision";
import type { Part, Started } from "./keep-running.ts";
import type { Ports } from "./ports.ts";
import type { Secrets } from "./secrets.ts";

export const serviceNames = ["gateway", "registry", "dispatch", "analytics"] as const;

/** A service has 25 s to finish its work. After this time it is killed. */
const serviceStopTimeoutMs = 30_000;
/** The exit code of a service with an invalid configuration: a restart does not help. */
const wrongConfiguration = 78;
/** Requests by client identity and refused credentials, per address and 10 s: 1,000 a second, for load tests on one machine. */
const localLimit = "10000";
/** A benchmark has one token and one project, whose limits must not be below the machine's capacity. */
const noLimit = "10000000";

type Addresses = {
  natsUrl: string;
  /** Copies of every stream: 1, or 3 with a cluster. */
  natsReplicas: string;
  mongoUrl: string;
};

/**
 * The environment of the services: the caller's environment, completed with defaults for one machine. The addresses of this start override
 * the caller's.
 */
export function serviceEnvironment(
  env: NodeJS.ProcessEnv,
  { natsUrl, natsReplicas, mongoUrl }: Addresses,
  secrets: Secrets,
): NodeJS.ProcessEnv {
  const defaults = {
    HERALD_ADMIN_TOKEN: secrets.adminToken,
    HERALD_OPEN_KEYS: secrets.openKeys,
    HERALD_REGISTRY_MASTER_KEYS: secrets.masterKeys,
    HERALD_DISPATCH_MASTER_KEYS: secrets.masterKeys,
    HERALD_DISPATCH_CUSTOM_ENDPOINTS: "true", // the simulators do not have the addresses of Apple and Google
    HERALD_ANALYTICS_MASTER_KEYS: secrets.masterKeys,
    HERALD_ANALYTICS_WEBHOOKS_ANY_HOST: "true", // users try webhooks with a receiver on this machine
    HERALD_GATEWAY_LIMIT_FAILURES: localLimit,
    HERALD_GATEWAY_LIMIT_CLIENTS: localLimit,
    HERALD_GATEWAY_LIMIT_NEW_DEVICES: noLimit,
    HERALD_GATEWAY_LIMIT_PROJECT: noLimit,
    HERALD_GATEWAY_QUOTA_SENDS: noLimit,
  };
  return {
    ...defaults,
    ...env,
    HERALD_NATS_URL: natsUrl,
    HERALD_MONGO_URL: mongoUrl,
    HERALD_NATS_REPLICAS: natsReplicas,
  };
}

/** Where a service listens. */
export const listenEnvironment = (ports: Ports, name: (typeof serviceNames)[number]): NodeJS.ProcessEnv => ({
  HERALD_PORT: String(ports[name]),
  HERALD_METRICS_PORT: String(ports[`${name}Metrics`]),
});

/**
 * V8 should collect the objects of a batch in the young generation. With semi-spaces of up to 16 MB the pushes in flight die there. With 8
 * MB V8 promotes most of them, for a third more memory and a fifth more CPU. With Node's default of 64 MB and more, each service holds half
 * as much memory again. The semi-spaces start small and grow on demand: 16 MB from the start costs an idle service 10 MB and saves no CPU.
 * Without pretenuring: V8 sees the pushes of a broadcast survive a collection or two, and would allocate similar objects in the old
 * generation, for an eighth more CPU and twice the memory. Objects that V8 still promotes, a batch and its outcomes, are collected when the
 * old generation has doubled, first at 32 MB. By default V8 lets it grow to four times the live objects.
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

/** One of Herald's programs in its own process, with its output in the common log. Each start calls `optionsOf`. */
export function programPart(name: string, optionsOf: () => ProgramOptions): Part {
  return { name, start: () => startProgram(name, optionsOf()) };
}

async function startProgram(name: string, { root, program, env, logLine }: ProgramOptions): Promise<Started> {
  const running = await startProcess({
    name,
    command: process.execPath,
    args: nodeArgs(root, program),
    cwd: root,
    // One malloc arena for all threads: arenas of V8's helper threads would keep 3 MB in all.
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

/** Runs a program to its end. Throws if its exit code is not 0. */
export async function runProgram(name: string, options: ProgramOptions): Promise<void> {
  const running = await startProgram(name, options);
  const { why } = await running.ended;
  if (!why.endsWith("exit code 0")) throw new Error(why);
}

/** The simulators of the providers, in one process. It keeps its certificate, so that a restart changes nothing for dispatch. */
export function simulatorsPart(options: Omit<ProgramOptions, "program"> & { dataDir: string; ports: Ports }): Part {
  const { dataDir, ports, env, logLine } = options;
  return programPart("simulators", () => ({
    ...options,
    program: "simulators",
    env: {
      ...env,
      HERALD_SIMULATORS_APNS_PORT: String(ports.apns),
      HERALD_SIMULATORS_FCM_PORT: String(ports.fcm),
      HERALD_SIMULATORS_WEBPUSH_PORT: String(ports.webpush),
      HERALD_SIMULATORS_CONTROL_PORT: String(ports.control),
      HERALD_SIMULATORS_GATEWAY: `http://127.0.0.1:${ports.gateway}`,
      HERALD_SIMULATORS_IDENTITY_FILE: join(dataDir, "simulators-identity.json"),
      HERALD_SIMULATORS_SUBSCRIPTIONS_FILE: join(dataDir, "simulators-subscriptions.ndjson"),
    },
    // Hide its only JSON line, which has a certificate.
    logLine: (name, line) => !line.startsWith("{") && logLine(name, line),
  }));
}

/**
 * Connecting to a new database and creating indexes takes a second or two, and ten times as long on a busy machine; where other programs
 * stop the whole machine for seconds, each attempt to connect may fail a few times.
 */
const readyWithinMs = 150_000;

/** Waits until every URL returns 200; else throws with the last answers of the services that are not ready. */
export async function allReady(urls: Readonly<Record<string, string>>): Promise<void> {
  const waiting = await Promise.all(
    Object.entries(urls).map(async ([name, url]) => {
      const why = await ready(url);
      return why && `${name} is not ready: ${why}`;
    }),
  );
  const problems = waiting.filter(Boolean);
  if (problems.length > 0) throw new Error(problems.join("\n"));
}

/** Undefined when ready, else the last answer. */
async function ready(url: string): Promise<string | undefined> {
  const deadline = Date.now() + readyWithinMs;
  for (;;) {
    const why = await fetch(url, { signal: AbortSignal.timeout(5_000) }).then(
      async (response) => {
        const text = await response.text();
        return response.ok ? undefined : `${response.status} ${text}`;
      },
      (error: Error) => (error.cause instanceof Error ? error.cause.message : error.message),
    );
    if (why === undefined || Date.now() > deadline) return why;
    await delay(100);
  }
}

/** A report follows a change within a second. An older version, which a test starts, reports every five. */
const reportedWithinMs = 10_000;

/** Waits until the gateway has heard that every service is ready, so that its status shows no start that is over. */
export async function allReported(admin: HeraldAdmin): Promise<void> {
  const deadline = Date.now() + reportedWithinMs;
  while (Date.now() < deadline) {
    const { services } = await admin.status();
    if (services.every(({ state }) => state === "ready")) return;
    await delay(100);
  }
}
