import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type BusUserName, passwordVariables } from "@herald/bus/permissions";
import { Project as ProjectView, type Provider } from "@herald/contracts";
import { freePortsEnvironment, type RunningHerald, type ServiceStart, startHerald } from "@herald/local-stack";
import { type AnalyticsAccess, removeAtExit } from "@herald/provision";
import {
  type Broker,
  eventually,
  expectStatus,
  type FaultyProxy,
  type FreshDatabase,
  faultyProxy,
  freshDatabase,
  type HttpAnswer,
  type Request,
  request,
  startBroker,
} from "@herald/testing";
import { afterEach, expect } from "vitest";
import { createLogs, type Logs } from "./logs.ts";
import { type Project, projectClient } from "./project.ts";
import { settingsFor } from "./providers.ts";
import { type SimulatorControl, simulatorControl } from "./simulators.ts";

export const serviceNames = ["gateway", "registry", "dispatch", "analytics"] as const;
export type ServiceName = (typeof serviceNames)[number];

export type Service = {
  readonly url: string;
  readonly metrics: string;
  /** The id of the current process; it changes with a restart. */
  pid(): number;
  /** Sends SIGKILL, or another signal that ends it. Resolves after the supervisor has restarted it. */
  kill(signal?: NodeJS.Signals): Promise<void>;
  /** Waits until it is ready. */
  ready(): Promise<void>;
};

export type SystemOptions = {
  /** Also builds the console. */
  readonly console?: boolean;
  readonly env?: Readonly<Record<string, string>>;
  /** Starts a broker in place of the system's own. Its configuration must have the users. */
  readonly broker?: () => Promise<Broker>;
  /** Another database server than the one of the test run. */
  readonly mongoUrl?: string;
  /** The tree and the environment of each start of a service. Default: this tree. */
  readonly startedFrom?: (service: ServiceName, usual: ServiceStart) => ServiceStart;
};

export type System = {
  readonly gateway: string;
  readonly adminToken: string;
  /** The system's own folder, with the `.herald/local.json` that `npm start` writes. */
  readonly folder: string;
  readonly broker: Broker;
  /** A NATS user that may only read `notification.opened`. */
  readonly analytics: AnalyticsAccess;
  /** A proxy between the services and their database. Cut it to make the database unavailable. */
  readonly database: FaultyProxy;
  /** Registry's database, to insert devices directly. */
  readonly registryDatabase: FreshDatabase;
  readonly simulators: SimulatorControl;
  /** The site of `examples/web`, and its project. */
  readonly example: { readonly url: string; readonly project: RunningHerald["local"]["project"] };
  readonly services: Readonly<Record<ServiceName, Service>>;
  readonly logs: Logs;
  /** The environment of a service, to start another instance. Each instance needs its own ports. */
  readonly environmentOf: (name: ServiceName) => NodeJS.ProcessEnv;
  /** Calls a route below `/admin/v1` with the admin token. */
  admin(route: string, options?: Request): Promise<HttpAnswer>;
  /** Creates a project with these providers. Default: APNs. */
  project(name?: string, providers?: readonly Provider[]): Promise<Project>;
  /** Creates an operator. */
  operator(operator: {
    readonly name: string;
    readonly role: string;
    readonly projects?: readonly { readonly id: string; readonly role: string; readonly approve?: boolean }[];
  }): Promise<{ readonly id: string; readonly token: string }>;
  /** Sets a provider of a project; `change` overrides some of the settings. */
  putProvider(project: Project, provider: Provider, change?: Record<string, unknown>): Promise<void>;
  ready(): Promise<void>;
  stop(): Promise<void>;
};

const root = join(import.meta.dirname, "../..");

/** The logins of all parts: each has its own user, but on a shared broker all use the same one. */
const loginEnvironment = ({ loginOf, user, password }: Broker): Record<string, string> =>
  user === undefined
    ? Object.fromEntries(
        (Object.keys(passwordVariables) as BusUserName[]).map((name) => [
          passwordVariables[name],
          loginOf(name).HERALD_NATS_PASSWORD ?? "",
        ]),
      )
    : { HERALD_NATS_USER: user, HERALD_NATS_PASSWORD: password ?? "" };

/** Without variables of vitest, and with a compile cache: compiling is half of the start-up cost, and services start often. */
const ownEnvironment = () => ({
  NODE_COMPILE_CACHE: join(root, "node_modules/.cache/node-compile"),
  ...Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !/^(VITEST|NODE_ENV$|NODE_OPTIONS$)/.test(name)),
  ),
});

/**
 * The whole system as `npm start` runs it: services and simulators are processes, which are restarted when they die. The test file has
 * its own broker, which it can kill, and a part of the run's database behind a proxy.
 */
async function startOnce({
  env = {},
  console = false,
  broker: makeBroker,
  mongoUrl,
  startedFrom,
}: SystemOptions = {}): Promise<System> {
  const folder = await mkdtemp(join(tmpdir(), "herald-e2e-"));
  removeAtExit(folder);
  const logs = createLogs();
  const closing: (() => Promise<unknown>)[] = [() => rm(folder, { recursive: true, force: true })];
  const stop = async () => {
    for (const close of closing.splice(0).reverse()) await close();
    // The supervisor restarts a crashed service, so only the log may show the crash.
    const [crash] = logs.crashes();
    if (crash) throw new Error(`${crash.part} crashed: ${crash.line}`);
  };
  const opened = async <Part>(part: Promise<Part>, close: (part: Part) => Promise<unknown>): Promise<Part> => {
    const open = await part;
    closing.push(() => close(open));
    return open;
  };
  try {
    const broker = await opened(makeBroker ? makeBroker() : startBroker(), (one) => one.stop());
    const databases: FreshDatabase[] = [];
    for (const service of ["registry", "dispatch", "analytics"]) {
      const prefix = databases[0]?.prefix;
      const fresh = freshDatabase({ url: mongoUrl, service, ...(prefix !== undefined && { prefix }) });
      databases.push(await opened(fresh, (one) => one.drop()));
    }
    const [registryDatabase] = databases as [FreshDatabase, FreshDatabase, FreshDatabase];
    const database = await opened(faultyProxy(registryDatabase.url), (one) => one.stop());
    const herald = await opened(
      startHerald({
        root,
        dataDir: join(folder, ".herald"),
        console,
        env: {
          ...ownEnvironment(),
          ...freePortsEnvironment,
          HERALD_NATS_URL: broker.url,
          ...loginEnvironment(broker),
          HERALD_NATS_STORAGE: "2GiB", // the declared sizes are for production, and every file has its own broker
          HERALD_MONGO_URL: database.url,
          HERALD_DATABASE_PREFIX: registryDatabase.prefix,
          ...env,
        },
        ...(startedFrom && { startedFrom }),
        say: (line) => logs.add("herald", line),
        logLine: logs.add,
      }),
      (one) => one.stop(),
    );
    const { gateway, adminToken, simulators } = herald.local;
    const admin = (route: string, options: Request = {}) => {
      const [method, path] = route.split(" ");
      return request(gateway, `${method} /admin/v1${path}`, { token: adminToken, ...options });
    };
    const putProvider: System["putProvider"] = async ({ id }, provider, change) => {
      const settings = settingsFor(provider, simulators, change);
      // Retries like a script of an operator: a busy machine sometimes answers 503.
      const put = () => admin(`PUT /projects/${id}/providers/${provider}`, { body: settings });
      await eventually(async () => expectStatus(await put(), 200, 201), { timeoutMs: 20_000 });
    };
    const services = Object.fromEntries(serviceNames.map((name) => [name, serviceOf(name, herald)])) as Record<
      ServiceName,
      Service
    >;
    return {
      gateway,
      adminToken,
      folder,
      broker,
      analytics: herald.local.nats.analytics,
      database,
      registryDatabase,
      simulators: simulatorControl(simulators.control),
      example: { url: herald.local.example, project: herald.local.project },
      services,
      logs,
      environmentOf: herald.environmentOf,
      admin,
      project: async (name = "E2E", providers = ["apns"]) => {
        const create = () => admin("POST /projects", { body: { project: { name } } });
        const { body } = await eventually(async () => expectStatus(await create(), 201), { timeoutMs: 20_000 });
        const project = projectClient(gateway, { id: ProjectView.parse(body.data).id, token: body.token });
        for (const provider of providers) await putProvider(project, provider);
        return project;
      },
      operator: async (operator) => {
        const create = () => admin("POST /operators", { body: { operator } });
        const { body } = await eventually(async () => expectStatus(await create(), 201), { timeoutMs: 20_000 });
        return { id: body.data.id, token: body.token };
      },
      putProvider,
      ready: async () => {
        await Promise.all(Object.values(services).map((service) => service.ready()));
      },
      stop,
    };
  } catch (error) {
    await stop();
    throw new Error(`the system did not start:\n${logs.worth()}`, { cause: error });
  }
}

function serviceOf(name: ServiceName, { local, environmentOf }: RunningHerald): Service {
  const { HERALD_PORT: port, HERALD_METRICS_PORT: metricsPort } = environmentOf(name);
  const url = `http://127.0.0.1:${port}`;
  const pid = () => {
    const found = local.processes[name];
    if (found === undefined) throw new Error(`${name} does not run`);
    return found;
  };
  return {
    url,
    metrics: `http://127.0.0.1:${metricsPort}/metrics`,
    pid,
    kill: async (signal = "SIGKILL") => {
      const killed = pid();
      process.kill(killed, signal);
      await eventually(() => expect(local.processes[name]).not.toBe(killed), { timeoutMs: 60_000 });
    },
    ready: async () => {
      await eventually(async () => expectStatus(await request(url, "GET /readyz"), 200), { timeoutMs: 30_000 });
    },
  };
}

/** Prints the system's warnings and errors when a test fails. */
export function logOnFailure(system: () => System | undefined): void {
  afterEach(({ task }) => {
    if (task.result?.state === "fail") process.stderr.write(`\n${system()?.logs.worth() ?? "no system"}\n`);
  });
}

/** Starts a system. Retries once if another process, such as another test, took one of its free ports. */
export const startSystem = (options: SystemOptions = {}): Promise<System> =>
  startOnce(options).catch((error: unknown) => {
    const { message, cause } = error as Error;
    if (!/EADDRINUSE|is taken/.test(`${message} ${cause}`)) throw error;
    return startOnce(options);
  });
