import { createECDH, generateKeyPairSync, randomBytes } from "node:crypto";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as delay } from "node:timers/promises";
import { type ApnsSettings, Herald, HeraldAdmin } from "@herald/client";
import { type ProjectId, Provider } from "@herald/contracts";
import { freePortsEnvironment } from "@herald/local-stack";
import { MongoClient } from "mongodb";
import { type SeedDevice, seedDevices } from "../../services/registry/test/seed-devices.ts";
import { services } from "./cost.ts";
import { childOf, end, start } from "./processes.ts";
import { createProfiler, inspectorOptions } from "./profiler.ts";
import type { Sink } from "./sinks.ts";
import { versionsOf } from "./versions.ts";

type Local = {
  readonly gateway: string;
  readonly adminToken: string;
  readonly nats: { readonly url: string };
  readonly mongo: { readonly url: string };
  readonly processes: Readonly<Record<string, number>>;
};

type Project = { readonly id: ProjectId; readonly token: string };

/** Well-formed credentials; the sinks do not check them. */
const credentials = () => ({
  apns: {
    key_id: "ABCDE12345",
    team_id: "ABCDE12345",
    bundle_id: "com.example.bench",
    environment: "production",
    private_key: generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey.export({ type: "pkcs8", format: "pem" }),
  },
  fcm: {
    service_account: {
      type: "service_account",
      project_id: "bench",
      client_email: "bench@bench.iam.gserviceaccount.com",
      private_key: generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey.export({
        type: "pkcs8",
        format: "pem",
      }),
    },
  },
  webpush: { subject: "mailto:bench@example.com" },
});

/** Log lines of the local stack itself, and warnings and errors of services. */
const notable = /^(herald +\| |\w+ +\| [\d:]{8} (warn|error|fatal) )/;
/** Enough to see why a row failed. */
const maxLastWords = 5;

/** Subscriptions share the keys of 50 browsers: a key pair for each would take longer than the bench. */
const browsers = 50;
const browserKeys = () =>
  Array.from({ length: browsers }, () => {
    const browser = createECDH("prime256v1");
    browser.generateKeys();
    return { p256dh: browser.getPublicKey("base64url"), auth: randomBytes(16).toString("base64url") };
  });

/** One bare request, for timing. The client would add retries, and to each POST an Idempotency-Key, which costs a write. */
const request = async <T>(url: string, token: string, method = "GET", body?: unknown): Promise<T> => {
  const response = await fetch(url, {
    method,
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  if (!response.ok) throw new Error(`${method} ${url} answered ${response.status}: ${await response.text()}`);
  return (await response.json()) as T;
};

const newProject = async (
  admin: HeraldAdmin,
  sinks: Readonly<Record<Provider, Sink>>,
  name: string,
): Promise<Project> => {
  const { project, token = "" } = await admin.projects.create({ name });
  for (const provider of Provider.options) {
    const { url: endpoint, ca } = sinks[provider];
    await admin.providers.set(project.id, provider, { ...credentials()[provider], endpoint, ca } as ApnsSettings);
  }
  return { id: project.id as ProjectId, token };
};

/** A notification as a backend posts it. */
type Wanted = {
  readonly title: string;
  readonly body: string;
  readonly targets: string[];
  readonly ttl: number;
  /** Every capable device is asked for a receipt. */
  readonly receipts?: true;
};

let tokens = 0;

/** Functions of a project that sends to the sinks. */
const createSender = (
  gateway: string,
  mongo: MongoClient,
  sinks: Readonly<Record<Provider, Sink>>,
  project: Project,
) => {
  const subscribers = browserKeys();
  const api = `${gateway}/api/v1`;
  const herald = new Herald({ url: gateway, token: project.token });
  const get = <T>(path: string): Promise<T> => request<T>(`${api}${path}`, project.token);
  const post = async (notification: Wanted): Promise<string> => {
    const answer = await request<{ data: { id: string } }>(`${api}/notifications`, project.token, "POST", {
      notification,
    });
    return answer.data.id;
  };
  type Taken = { readonly id?: string; readonly errors?: unknown };
  return {
    project,
    herald,
    /** Reads below `/api/v1`. */
    get,
    post,
    /** Sends several notifications in one request. Resolves to the result of each. */
    postBatch: async (notifications: readonly Wanted[]): Promise<readonly Taken[]> =>
      (await request<{ data: Taken[] }>(`${api}/notifications/batch`, project.token, "POST", { notifications })).data,
    /** Stores new devices of a provider's platform, all subscribed to the topic. Resolves to their ids, in order. */
    seed: async (
      provider: Provider,
      topic: string,
      devices: number,
      describe: (
        index: number,
      ) => Pick<SeedDevice, "user" | "metadata" | "identifiers" | "capabilities" | "further"> = () => ({}),
    ): Promise<readonly string[]> => {
      const wanted = function* () {
        for (let index = 0; index < devices; index++) {
          const token = (++tokens).toString(16).padStart(64, "0");
          const device = { topics: [topic], ...describe(index) };
          if (provider === "apns") yield { ...device, token, platform: "ios" as const };
          if (provider === "fcm") yield { ...device, token: `${token}:${token}`, platform: "android" as const };
          const keys = subscribers[index % browsers];
          if (provider === "webpush" && keys !== undefined)
            yield { ...device, token: `${sinks.webpush.url}/push/${token}`, keys, platform: "web" as const };
        }
      };
      const stored: string[] = [];
      for await (const ids of seedDevices(mongo.db("herald_registry"), project.id, wanted())) stored.push(...ids);
      return stored;
    },
    send: (topic: string, more: Pick<Wanted, "receipts"> = {}): Promise<string> =>
      post({ title: "Hello", body: "World", targets: [`topic:${topic}`], ttl: 3600, ...more }),
    /** The number of pushes in the statistics. */
    sent: async (): Promise<number> => (await herald.stats()).totals.sent,
    /** The same of Live Activities. */
    sentOfActivities: async (): Promise<number> => (await herald.stats({ push_type: "liveactivity" })).totals.sent,
    progress: (id: string) => herald.notifications.get(id),
    /** The number of opens of a notification in the statistics. */
    opened: async (notification: string): Promise<number> => (await herald.stats({ notification })).totals.opened,
  };
};

export type Sender = ReturnType<typeof createSender>;

/**
 * Starts the whole system as `npm start` runs it, in its own folder and on free ports, with a project that sends to the sinks. Profiles
 * of the services are written to the folder `profiles`, if given.
 */
export const startSystem = async (sinks: Readonly<Record<Provider, Sink>>, profiles?: string) => {
  const openKeys = `bench:${randomBytes(32).toString("base64")}`;
  const dataDir = await mkdtemp(join(tmpdir(), "herald-bench-"));
  const child = start("tools/local-stack/src/main.ts", [], {
    ...freePortsEnvironment,
    HERALD_DATA_DIR: dataDir,
    HERALD_LOG_LEVEL: "warn",
    HERALD_DEMO_HISTORY: "off",
    HERALD_OPEN_KEYS: openKeys,
    // The default of production: the local stack has its own limit for tests.
    HERALD_GATEWAY_LIMIT_FAILURES: "100",
    // All apps of the bench share one address.
    HERALD_GATEWAY_LIMIT_CLIENTS: "10000000",
    ...(profiles === undefined ? {} : { NODE_OPTIONS: `${process.env.NODE_OPTIONS ?? ""} ${inspectorOptions}` }),
  });
  if (child.stdout === null) throw new Error("the system prints nowhere");
  const printed = createInterface({ input: child.stdout });
  const lastWords: string[] = [];
  printed.on("line", (line: string) => {
    if (notable.test(line) && lastWords.push(line) > maxLastWords) lastWords.shift();
  });
  const profiler = profiles === undefined ? undefined : createProfiler(printed, services, profiles);
  let isReady = false;
  printed.on("line", (line: string) => {
    isReady ||= line === "Herald is ready.";
  });
  const readLocal = async (): Promise<Local> => {
    while (!isReady && child.exitCode === null) await delay(200);
    if (!isReady) throw new Error("the system did not start");
    return JSON.parse(await readFile(join(dataDir, "local.json"), "utf8")) as Local;
  };
  const local = await readLocal();
  const mongo = await new MongoClient(local.mongo.url).connect();
  const admin = new HeraldAdmin({ url: local.gateway, token: local.adminToken });
  const senderOf = async (name: string): Promise<Sender> =>
    createSender(local.gateway, mongo, sinks, await newProject(admin, sinks, name));
  // The local stack also starts the PostgreSQL behind FerretDB, but does not list its process.
  const postgres = child.pid === undefined ? undefined : childOf(child.pid, "/bin/postgres");
  const started: Record<string, number | undefined> = { ...local.processes, postgres };
  const processes = [...services, "nats", "mongo", "postgres"].flatMap((name) => {
    const pid = started[name];
    return pid === undefined ? [] : [[name, pid] as const];
  });
  return {
    ...(await senderOf("bench")),
    /** Process ids of Herald's services, and of broker and database if they run on this machine. */
    processes: Object.fromEntries(processes),
    profiler,
    versions: await versionsOf(local.nats.url, mongo),
    gateway: local.gateway,
    admin,
    openKeys,
    /** The newest lines of the system's log that may explain a failed row. */
    lastWords: (): readonly string[] => lastWords,
    /** Creates another project that sends to the same sinks. */
    anotherProject: (name = "other"): Promise<Sender> => senderOf(name),
    /** Creates a token with one scope. */
    tokenOf: async ({ id }: Project, scope: "export" | "templates"): Promise<string> =>
      (await admin.tokens.create(id, { name: scope, scopes: [scope] })).token ?? "",
    /** The database of a service, for data that would take too long to create through the API. */
    database: (service: "registry" | "dispatch" | "analytics") => mongo.db(`herald_${service}`),
    mongoUrl: local.mongo.url,
    stop: async (): Promise<void> => {
      await mongo.close();
      profiler?.close();
      await end(child);
      await rm(dataDir, { recursive: true, force: true });
    },
  };
};

export type System = Awaited<ReturnType<typeof startSystem>>;
