import { join } from "node:path";
import type { BusUserName } from "@herald/bus/permissions";
import { bundle, type ProgramName } from "../bundle/bundle.ts";
import { buildConsole } from "../bundle/console.ts";
import { dockerEngine } from "../docker.ts";
import { composeStarter } from "../docker-compose.ts";
import { startMongo } from "../mongo/start-mongo.ts";
import { startNats } from "../nats/start-nats.ts";
import type { RunningServer } from "../stack-options.ts";
import { ensureDemoProject } from "./demo-project.ts";
import { startExampleSite } from "./example-site.ts";
import { keepAccounts } from "./keep-accounts.ts";
import { type Kept, keepRunning, type Part, type Started } from "./keep-running.ts";
import { type LocalFile, localFile } from "./local-file.ts";
import { givenLogins, ownLogins } from "./nats-users.ts";
import { allPorts, expectFree, readPorts } from "./ports.ts";
import { allReady } from "./readiness.ts";
import { takeRunLock } from "./run-lock.ts";
import { keepSecrets } from "./secrets.ts";
import { loggedIn, programPart, runProgram, serviceEnvironment, serviceNames } from "./services.ts";
import { simulatorsPart } from "./simulators.ts";

/** Everything that a killed start leaves is stopped by its watchdog, the services' own deadline included. */
const waitForPreviousMs = 40_000;

/** A part that keeps ending while all is being started will not get better by waiting. */
const endsBeforeReady = 4;

/** The tree that a service is started from, which has its bundle, and its environment. */
export type ServiceStart = { root: string; env: NodeJS.ProcessEnv };

export type StartOptions = {
  root: string;
  dataDir: string;
  env: NodeJS.ProcessEnv;
  /** Builds the console too. */
  console?: boolean;
  /** For a test: the tree and the environment that a start of a service uses instead of these. */
  startedFrom?: (service: (typeof serviceNames)[number], usual: ServiceStart) => ServiceStart;
  /** What this program itself has to say. */
  say: (line: string) => void;
  /** What a part says, as it says it: services speak JSON. */
  logLine: (name: string, line: string) => void;
};

export type RunningHerald = {
  local: LocalFile;
  /** What the services were started with, for a further instance of one: it needs ports of its own. */
  environmentOf: (part: BusUserName) => NodeJS.ProcessEnv;
  /** From where broker and database came. */
  sources: { nats: RunningServer["source"]; mongo: RunningServer["source"] };
  /** Settles with the reason when a part has ended that cannot be started again. */
  failed: Promise<string>;
  stop: () => Promise<void>;
};

/** The whole system on this machine: broker and database, bootstrap, simulators, the four services, a demo project. */
export async function startHerald(start: StartOptions): Promise<RunningHerald> {
  const { root, dataDir, env, console: withConsole = false, startedFrom, say, logLine } = start;
  const ports = await readPorts(env);
  const { wasKilled } = await takeRunLock(dataDir);
  await localFile(dataDir).remove(); // of a start that was killed
  const withDocker = "version" in (await dockerEngine(env));
  const ownPorts = allPorts.filter((name) => !(withDocker && (name === "nats" || name === "mongo")));
  await expectFree(ports, ownPorts, wasKilled ? waitForPreviousMs : 0);
  const secrets = await keepSecrets(dataDir);

  const kept: Record<string, Kept> = {};
  let fail: (why: string) => void = () => {};
  const failed = new Promise<string>((resolve) => {
    fail = resolve;
  });
  const file = localFile(dataDir);
  let local: LocalFile | undefined;
  let ends = 0;
  const writeLocal = async () => {
    if (!local) return;
    local.processes = processIds(kept);
    await file.write(local);
  };
  const keep = async (part: Part) => {
    kept[part.name] = await keepRunning(part, {
      end: (why) => {
        say(`${why}; starting it again`);
        ends += 1;
        if (!local && ends === endsBeforeReady) fail(`${why}, again and again`);
      },
      start: () => void writeLocal().catch((error: Error) => say(`local.json could not be written: ${error.message}`)),
      hopeless: (why) => fail(`${why}: its configuration is wrong`),
    });
  };
  let site: { url: string; stop: () => Promise<void> } | undefined;
  const stop = async () => {
    local = undefined;
    await file.remove();
    await site?.stop();
    const stopAll = (names: readonly string[]) => Promise.all(names.map((name) => kept[name]?.stop()));
    await stopAll(serviceNames);
    await stopAll(["simulators"]);
    await stopAll(["nats", "mongo"]);
  };

  // Broker and database start meanwhile.
  const bundled = bundle(root, [...serviceNames, "bus", "simulators"]);
  // Herald works without its page.
  const built = (withConsole ? buildConsole(root) : Promise.resolve()).catch((error: Error) => say(error.message));
  const compose = { root, env, natsPort: ports.nats, mongoPort: ports.mongo, natsPasswords: secrets.nats };
  const common = { env, progress: say };
  try {
    const simulators = simulatorsPart({ root, env, logLine, dataDir, ports });
    const startSimulators = bundled.then(() => keep(simulators.part));
    const nats = serverPart("nats", async () =>
      startNats({
        ...common,
        dataDir: join(dataDir, "nats"),
        port: ports.nats,
        docker: composeStarter("nats", compose),
        extraConfig: await keepAccounts(dataDir, secrets.nats),
      }),
    );
    const mongo = serverPart("mongo", () =>
      startMongo({
        ...common,
        dataDir: join(dataDir, "mongo"),
        port: ports.mongo,
        docker: composeStarter("mongo", compose),
      }),
    );
    say("starting broker, database and simulators");
    await allOrThrow([keep(nats.part), keep(mongo.part), startSimulators]);

    const ownBroker = nats.running().source.step !== "environment";
    const logins = ownBroker ? ownLogins(secrets.nats) : givenLogins(env);
    const natsUrl = nats.running().url;
    const addresses = {
      natsUrl,
      natsReplicas: (!ownBroker && env.HERALD_NATS_REPLICAS) || "1",
      mongoUrl: mongo.running().url,
    };
    const serviceEnv = serviceEnvironment(env, addresses, ports, secrets);
    const environmentOf = (part: BusUserName) => loggedIn(serviceEnv, logins.of(part));
    const options = (part: BusUserName, program: ProgramName) => ({ root, program, env: environmentOf(part), logLine });
    await runProgram("bootstrap", options("bootstrap", "bus"));
    say(`starting ${serviceNames.join(", ")}`);
    await allOrThrow(
      serviceNames.map((name) =>
        keep(programPart(name, () => ({ ...options(name, name), ...startedFrom?.(name, options(name, name)) }))),
      ),
    );

    const urls = Object.fromEntries(serviceNames.map((name) => [name, `http://127.0.0.1:${ports[name]}`]));
    const hopeless = failed.then((why) => Promise.reject(new Error(why)));
    await Promise.race([allReady(urls), hopeless]);
    const gateway = `http://127.0.0.1:${ports.gateway}`;
    const adminToken = serviceEnv.HERALD_ADMIN_TOKEN ?? secrets.adminToken;
    const simulatorAddresses = await simulators.addresses();
    const project = await ensureDemoProject({
      dataDir,
      gateway,
      adminToken,
      keys: secrets,
      simulators: simulatorAddresses,
    });
    await allReady(urls);
    site = await startExampleSite({ root, port: ports.example, gateway, project });
    await built;

    local = {
      gateway,
      adminToken,
      project,
      simulators: simulatorAddresses,
      example: site.url,
      nats: { url: natsUrl, ...logins.of("admin"), analytics: logins.analytics },
      mongo: { url: mongo.running().url },
      processes: {},
    };
    await writeLocal();
    const sources = { nats: nats.running().source, mongo: mongo.running().source };
    return { local, environmentOf, sources, failed, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** A broker or a database that is started again on the same port with the same data when it ends. */
function serverPart(name: string, start: () => Promise<RunningServer>): { part: Part; running: () => RunningServer } {
  let latest: RunningServer | undefined;
  const part: Part = {
    name,
    start: async (): Promise<Started> => {
      const server = await start();
      latest = server;
      return { ...server, ended: server.ended.then((why) => ({ why, again: true })) };
    },
  };
  return {
    part,
    running: () => {
      if (!latest) throw new Error(`${name} was not started`);
      return latest;
    },
  };
}

function processIds(kept: Readonly<Record<string, Kept>>): Record<string, number> {
  return Object.fromEntries(
    Object.entries(kept).flatMap(([name, { pids }]) => {
      const [first] = pids();
      return first === undefined ? [] : [[name, first] as const];
    }),
  );
}

/** Waits for all, so that what did start can be stopped, then throws the first reason. */
async function allOrThrow(starting: readonly Promise<void>[]): Promise<void> {
  const results = await Promise.allSettled(starting);
  for (const result of results) if (result.status === "rejected") throw result.reason;
}
