import { join } from "node:path";
import { buildConsole, buildDocs, bundle, type ProgramName } from "@herald/bundle";
import type { BusUserName } from "@herald/bus/permissions";
import { HeraldAdmin } from "@herald/client";
import {
  composeStarter,
  dockerEngine,
  givenLogins,
  keepAccounts,
  ownLogins,
  type RunningServer,
  startMongo,
  startNats,
} from "@herald/provision";
import { type LocalFile, localFile, takeRunLock } from "./data-folder.ts";
import { makeDemoHistory } from "./demo-history.ts";
import { ensureDemoProject, simulatorAddresses } from "./demo-project.ts";
import { startExampleSite } from "./example-site.ts";
import { type Kept, keepRunning, type Part } from "./keep-running.ts";
import { allPorts, expectFree, readPorts } from "./ports.ts";
import { keepSecrets } from "./secrets.ts";
import {
  allReady,
  allReported,
  listenEnvironment,
  programPart,
  runProgram,
  serviceEnvironment,
  serviceNames,
  simulatorsPart,
} from "./services.ts";

/** The watchdog of a killed start stops its remaining processes, within the services' own deadline. */
const waitForPreviousMs = 40_000;

/** A part that has ended this often during the start will not recover by waiting. */
const endsBeforeReady = 4;

/** The tree with a service's bundle, and the service's environment. */
export type ServiceStart = { root: string; env: NodeJS.ProcessEnv };

export type StartOptions = {
  root: string;
  dataDir: string;
  env: NodeJS.ProcessEnv;
  /** Also builds the console. */
  console?: boolean;
  /** Also fills the demo project, once for each data folder. */
  history?: boolean;
  /** For tests: replaces the tree and the environment of a service's start. */
  startedFrom?: (service: (typeof serviceNames)[number], usual: ServiceStart) => ServiceStart;
  /** Prints a line of this program itself. */
  say: (line: string) => void;
  /** Prints a line of a part, unchanged: services log JSON. */
  logLine: (name: string, line: string) => void;
};

export type RunningHerald = Awaited<ReturnType<typeof startHerald>>;

/** Starts the whole system on this machine: broker, database, bootstrap, simulators, the four services and a demo project. */
export async function startHerald(start: StartOptions) {
  const { root, dataDir, env, console: withConsole = false, history = false, startedFrom, say, logLine } = start;
  const ports = await readPorts(env);
  const { wasKilled, release } = await takeRunLock(dataDir);
  localFile(dataDir).remove(); // left by a start that was killed
  const withDocker = "version" in (await dockerEngine(env));
  const ownPorts = allPorts.filter((name) => !(withDocker && (name === "nats" || name === "mongo")));
  await expectFree(ports, ownPorts, wasKilled ? waitForPreviousMs : 0);
  const secrets = await keepSecrets(dataDir);

  const kept: Record<string, Kept> = {};
  /** Settles with the reason when a part has ended that cannot be restarted. */
  const { promise: failed, resolve: fail } = Promise.withResolvers<string>();
  const file = localFile(dataDir);
  let local: LocalFile | undefined;
  let ends = 0;
  const writeLocal = () => {
    if (!local) return;
    const running = Object.entries(kept).flatMap(([name, { pids }]) =>
      pids()
        .slice(0, 1)
        .map((pid) => [name, pid]),
    );
    local.processes = Object.fromEntries(running);
    file.write(local);
  };
  const keep = async (part: Part) => {
    kept[part.name] = await keepRunning(part, {
      end: (why) => {
        say(`${why}; starting it again`);
        ends += 1;
        if (!local && ends === endsBeforeReady) fail(`${why}, again and again`);
      },
      start: () => {
        try {
          writeLocal();
        } catch (error) {
          say(`local.json could not be written: ${(error as Error).message}`);
        }
      },
      hopeless: (why) => fail(`${why}: its configuration is wrong`),
    });
  };
  /** Keeps a broker or database on its port, with its data. Returns its first start. */
  const keepServer = async (name: string, startServer: () => Promise<RunningServer>): Promise<RunningServer> => {
    const { promise: first, resolve } = Promise.withResolvers<RunningServer>();
    await keep({
      name,
      start: async () => {
        const server = await startServer();
        resolve(server);
        return { ...server, ended: server.ended.then((why) => ({ why, again: true })) };
      },
    });
    return first;
  };
  let site: { url: string; stop: () => Promise<void> } | undefined;
  const stop = async () => {
    local = undefined;
    file.remove();
    await site?.stop();
    const stopAll = (names: readonly string[]) => Promise.all(names.map((name) => kept[name]?.stop()));
    await stopAll(serviceNames);
    await stopAll(["simulators"]);
    await stopAll(["nats", "mongo"]);
    release();
  };

  // Bundle while broker and database start.
  const bundled = bundle(root, [...serviceNames, "bus", "simulators"]);
  // Herald works without its pages.
  const pages = [buildDocs(root), ...(withConsole ? [buildConsole(root)] : [])];
  const built = Promise.all(pages.map((page) => page.catch((error: Error) => say(error.message))));
  const compose = { root, env, natsPort: ports.nats, mongoPort: ports.mongo, natsPasswords: secrets.nats };
  const stack = (name: "nats" | "mongo") => {
    const common = { env, progress: say, dataDir: join(dataDir, name), port: ports[name] };
    return { ...common, docker: composeStarter(name, compose) };
  };
  try {
    const startSimulators = bundled.then(() => keep(simulatorsPart({ root, env, logLine, dataDir, ports })));
    say("starting broker, database and simulators");
    const [nats, mongo] = await allOrThrow([
      keepServer("nats", async () =>
        startNats({ ...stack("nats"), extraConfig: await keepAccounts(dataDir, secrets.nats) }),
      ),
      keepServer("mongo", () => startMongo(stack("mongo"))),
      startSimulators,
    ]);

    const ownBroker = nats.source.step !== "environment";
    const logins = ownBroker ? ownLogins(secrets.nats) : givenLogins(env);
    const natsReplicas = (!ownBroker && env.HERALD_NATS_REPLICAS) || "1";
    const addresses = { natsUrl: nats.url, natsReplicas, mongoUrl: mongo.url };
    const serviceEnv = serviceEnvironment(env, addresses, secrets);
    /** The environment of the services, for a further instance of one, which needs its own ports. */
    const environmentOf = (part: BusUserName): NodeJS.ProcessEnv => {
      const { user, password } = logins.of(part);
      const login = { HERALD_NATS_USER: user, HERALD_NATS_PASSWORD: password };
      const service = serviceNames.find((name) => name === part);
      return { ...serviceEnv, ...login, ...(service && listenEnvironment(ports, service)) };
    };
    const options = (part: BusUserName, program: ProgramName) => ({ root, program, env: environmentOf(part), logLine });
    await runProgram("bootstrap", options("bootstrap", "bus"));
    say(`starting ${serviceNames.join(", ")}`);
    await allOrThrow(
      serviceNames.map((name) =>
        keep(programPart(name, () => ({ ...options(name, name), ...startedFrom?.(name, options(name, name)) }))),
      ),
    );

    const control = `http://127.0.0.1:${ports.control}`;
    const services = serviceNames.map((name) => [name, `http://127.0.0.1:${ports[name]}/readyz`]);
    const urls = Object.fromEntries([...services, ["simulators", `${control}/livez`]]);
    const hopeless = failed.then((why) => Promise.reject(new Error(why)));
    await Promise.race([allReady(urls), hopeless]);
    const gateway = `http://127.0.0.1:${ports.gateway}`;
    const adminToken = serviceEnv.HERALD_ADMIN_TOKEN ?? secrets.adminToken;
    const simulators = await simulatorAddresses(control);
    const project = await ensureDemoProject({ dataDir, gateway, adminToken, keys: secrets, simulators });
    await allReady(urls);
    // Herald works without the history.
    if (history)
      await Promise.race([makeDemoHistory(dataDir, { gateway, project, simulators }, say), hopeless]).catch(
        (error: Error) => say(`demo project: ${error.message}`),
      );
    await allReported(new HeraldAdmin({ url: gateway, token: adminToken }));
    site = await startExampleSite({ root, port: ports.example, gateway, project });
    await built;

    local = {
      gateway,
      adminToken,
      project,
      simulators,
      example: site.url,
      nats: { url: nats.url, ...logins.of("admin"), analytics: logins.analytics },
      mongo: { url: mongo.url },
      processes: {},
    };
    writeLocal();
    /** Where broker and database come from. */
    const sources = { nats: nats.source, mongo: mongo.source };
    return { local, environmentOf, sources, failed, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Waits for all, so that the started parts can be stopped, then throws the first error. */
async function allOrThrow<Starting extends readonly unknown[] | []>(starting: Starting) {
  await Promise.allSettled(starting);
  return Promise.all(starting);
}
