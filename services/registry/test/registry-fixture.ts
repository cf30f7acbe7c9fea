import {
  sendRequest as askBus,
  type Bus,
  type Consuming,
  closeBus,
  connectBus,
  consume,
  ensureStreams,
  type Handler,
  handleRequest,
  openBucket,
} from "@herald/bus";
import { busUsers } from "@herald/bus/permissions";
import {
  type DataOf,
  deviceRequests,
  type EventContract,
  erasureRequests,
  newProjectId,
  newTokenId,
  type ProjectId,
  ProjectRecord,
  projectRequests,
  type RequestContract,
  RulesRecord,
  secretHash,
  TokenRecord,
} from "@herald/contracts";
import { createLogger, HeraldError, readConfig } from "@herald/kit";
import {
  type Broker,
  eventually,
  type FreshDatabase,
  faultyProxy,
  freshDatabase,
  leakCheck,
  readPublished,
  startBroker,
} from "@herald/testing";
import type { Db } from "mongodb";
import { afterAll, beforeAll, beforeEach } from "vitest";
import type { z } from "zod";
import { createApp } from "../src/app.ts";
import { RegistryConfig } from "../src/config.ts";

type Answer<RequestContractAny extends RequestContract> = z.output<RequestContractAny["answer"]>;
type Overrides = NonNullable<Parameters<typeof createApp>[1]>;

/** Registry with its own broker and database, and the calls that gateway and dispatch make. */
export type RegistryTest = Awaited<ReturnType<typeof startRegistryTest>>;

const log = createLogger({ service: "test", level: "silent" });

type Options = { readonly overrides?: Overrides; readonly environment?: Record<string, string> };

export const startRegistryTest = async ({ overrides, environment = {} }: Options = {}) => {
  const noLeak = leakCheck();
  const [broker, database]: [Broker, FreshDatabase] = await Promise.all([
    startBroker(),
    freshDatabase({ service: "registry" }),
  ]);
  const bus: Bus = await connectBus({
    url: broker.url,
    name: "test",
    inboxPrefix: busUsers.gateway.inboxPrefix,
    log,
  });
  await ensureStreams(bus, { replicas: 1, sizeFactor: 0.01 });
  const proxy = await faultyProxy(database.url);
  /** Creates another registry beside the first, also one that reaches the broker through a proxy, or with more environment variables. */
  const newApp = (natsUrl = broker.url, more: Record<string, string> = {}) =>
    createApp(
      readConfig(RegistryConfig, {
        HERALD_NATS_URL: natsUrl,
        ...broker.loginOf("registry"),
        HERALD_MONGO_URL: proxy.url,
        HERALD_DATABASE_PREFIX: database.prefix,
        HERALD_REGISTRY_MASTER_KEYS: `m1:${Buffer.alloc(32, 7).toString("base64")}`,
        ...environment,
        ...more,
        HERALD_PORT: "0",
        HERALD_METRICS_PORT: "0",
      }),
      // A pass asks the database: files that wait for deletions have more of them.
      { log, removeEveryMs: 500, lingerMs: 0, ...overrides },
    );
  /** What dispatch is asked to erase, unless it fails. */
  const dispatch = { fails: false, erased: [] as z.output<typeof erasureRequests.eraseDevices.request>[] };
  const answering = handleRequest(bus, erasureRequests.eraseDevices, async (erased) => {
    if (dispatch.fails) throw new HeraldError("database-unavailable", "the database is unavailable");
    dispatch.erased.push(erased);
    return {};
  });
  const app = newApp();
  await app.start();
  const db: Db = database.client.db(database.name);
  const consuming: Consuming[] = [];

  const ask = <Request extends z.ZodType, Reply extends z.ZodType>(
    question: RequestContract<Request, Reply>,
    data: z.input<Request>,
    timeoutMs = 20_000,
  ): Promise<z.output<Reply>> => askBus(bus, question, data, { timeoutMs });

  const ready = async (address: string) => {
    const { status } = await fetch(`${address}/readyz`);
    if (status !== 200) throw new Error(`readyz is ${status}`);
  };
  await eventually(() => ready(app.address()), { timeoutMs: 20_000 });

  const project = async (): Promise<ProjectId> => {
    const projectId = newProjectId(new Date());
    await ask(projectRequests.create, {
      projectId,
      name: "App",
      openRegistration: true,
      tokenId: newTokenId(new Date()),
      tokenHash: secretHash(projectId),
    });
    return projectId;
  };

  return {
    broker,
    bus,
    db,
    /** The proxy between registry and its database; `db` bypasses it. */
    database: proxy,
    app,
    dispatch,
    newApp,
    ask,
    ready,
    project,
    tokens: openBucket(bus, "push_tokens", TokenRecord),
    settings: openBucket(bus, "push_projects", ProjectRecord),
    rules: openBucket(bus, "push_projects", RulesRecord),
    register: (
      projectId: ProjectId,
      token: string,
      rest: Partial<DataOf<{ schema: typeof deviceRequests.register.request }>> = {},
    ): Promise<Answer<typeof deviceRequests.register>> =>
      ask(deviceRequests.register, { projectId, platform: "ios", token, topics: [], ...rest }),
    /** The last published event of this type in a project. */
    lastEvent: async <Schema extends z.ZodType>(projectId: ProjectId, contract: EventContract<Schema>) => {
      const subject = contract.filter.replace("*", projectId);
      const last = (await readPublished(broker, subject)).at(-1);
      return last && contract.schema.parse(JSON.parse(last.body));
    },
    handle: async (...handlers: Handler[]): Promise<Consuming> => {
      const started = await consume(bus, handlers);
      consuming.push(started);
      await eventually(() => {
        if (!started.ready()) throw new Error("the consumers are not ready");
      });
      return started;
    },
    stop: async () => {
      await Promise.all(consuming.map((one) => one.stop(2_000)));
      await app.stop();
      await answering.stop();
      await closeBus(bus);
      await proxy.stop();
      await database.drop();
      await broker.stop();
      await noLeak();
    },
  };
};

/** One registry for all tests of a file. It can be used in hooks and tests. `eachProject` gets a new project before each test. */
export const useRegistry = ({
  eachProject,
  ...options
}: Options & { readonly eachProject?: (projectId: ProjectId) => void } = {}): RegistryTest => {
  const registry = {} as RegistryTest;
  beforeAll(async () => {
    Object.assign(registry, await startRegistryTest(options));
  });
  afterAll(() => registry.stop());
  if (eachProject) beforeEach(async () => eachProject(await registry.project()));
  return registry;
};

/** For tests with many concurrent requests or rows: a busy machine may take minutes, which is no fault of registry. */
export const patient = { timeout: 180_000 };
/** Timeout of a request in such a test. */
export const patientMs = 120_000;

/** Repeats a request that gets no reply in time, as clients do. */
export const untilAnswered =
  <Data, Reply>(request: (data: Data) => Promise<Reply>) =>
  async (data: Data): Promise<Reply> => {
    for (;;) {
      try {
        return await request(data);
      } catch (error) {
        if (!(error instanceof HeraldError) || error.code !== "service-unavailable") throw error;
      }
    }
  };

/** The code and messages of the HeraldError with which a promise rejects. */
export const failure = async (work: Promise<unknown>): Promise<{ code: string; messages: readonly string[] }> => {
  try {
    await work;
  } catch (error) {
    if (error instanceof HeraldError) return { code: error.code, messages: error.messages };
    throw error;
  }
  throw new Error("it did not fail");
};

/** A token in the form of APNs. */
export const apnsToken = (seed: string): string => secretHash(seed);
