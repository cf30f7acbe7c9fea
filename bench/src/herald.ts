import { generateKeyPairSync, randomBytes } from "node:crypto";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { ProjectId } from "@herald/contracts";
import { MongoClient } from "mongodb";
import { seedDevices } from "../../services/registry/src/stores/seed-devices.ts";
import { end, start } from "./processes.ts";

type Local = {
  readonly gateway: string;
  readonly adminToken: string;
  readonly mongo: { readonly url: string };
  readonly processes: Readonly<Record<string, number>>;
};

type Project = { readonly id: ProjectId; readonly token: string };

/** The part of a notification's answer that the bench waits for. */
type Progress = { readonly status: string; readonly counts: Readonly<Record<string, number>> };

const freePorts = Object.fromEntries(
  ["GATEWAY", "REGISTRY", "DISPATCH", "ANALYTICS"]
    .flatMap((name) => [`HERALD_${name}_PORT`, `HERALD_${name}_METRICS_PORT`])
    .concat(["NATS", "MONGO", "SIMULATORS_CONTROL", "SIMULATORS_APNS"].map((name) => `HERALD_${name}_PORT`))
    .map((name) => [name, "0"]),
);

const request = async <T>(url: string, token: string, method = "GET", body?: unknown): Promise<T> => {
  const response = await fetch(url, {
    method,
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  if (!response.ok) throw new Error(`${method} ${url} answered ${response.status}: ${await response.text()}`);
  return (await response.json()) as T;
};

/** The whole system as `npm start` runs it, in a folder of its own and on free ports, with a project that sends to `sink`. */
export const startSystem = async (sink: { url: string; ca: string }) => {
  const openKeys = `bench:${randomBytes(32).toString("base64")}`;
  const dataDir = await mkdtemp(join(tmpdir(), "herald-bench-"));
  const child = start("packages/local-stack/src/start.ts", [], {
    ...freePorts,
    HERALD_DATA_DIR: dataDir,
    HERALD_LOG_LEVEL: "warn",
    HERALD_OPEN_KEYS: openKeys,
    // As in production: the local stack's own are for tests.
    HERALD_GATEWAY_LIMIT_FAILURES: "100",
  });
  child.stdout?.resume();
  const readLocal = async (): Promise<Local> => {
    while (child.exitCode === null) {
      try {
        return JSON.parse(await readFile(join(dataDir, "local.json"), "utf8")) as Local;
      } catch {
        await delay(200);
      }
    }
    throw new Error("the system did not start");
  };
  const local = await readLocal();
  const admin = `${local.gateway}/admin/v1`;
  const created = await request<{ data: { id: ProjectId }; token: string }>(
    `${admin}/projects`,
    local.adminToken,
    "POST",
    {
      project: { name: "bench" },
    },
  );
  const project: Project = { id: created.data.id, token: created.token };
  await request(`${admin}/projects/${project.id}/providers/apns`, local.adminToken, "PUT", {
    key_id: "ABCDE12345",
    team_id: "ABCDE12345",
    bundle_id: "com.example.bench",
    environment: "production",
    endpoint: sink.url,
    ca: sink.ca,
    private_key: generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey.export({ type: "pkcs8", format: "pem" }),
  });
  const mongo = await new MongoClient(local.mongo.url).connect();
  let tokens = 0;
  const get = <T>(path: string): Promise<T> => request<T>(`${local.gateway}/api/v1${path}`, project.token);
  return {
    processes: local.processes,
    gateway: local.gateway,
    project,
    openKeys,
    /** Reads below `/api/v1`. */
    get,
    /** How many opens of a notification the statistics have. */
    opened: async (notification: string): Promise<number> =>
      (await get<{ data: { totals: { opened: number } } }>(`/stats?notification=${notification}`)).data.totals.opened,
    /** Puts so many new iOS devices, all subscribed to the topic. */
    seed: async (topic: string, devices: number): Promise<void> => {
      const wanted = function* () {
        for (let index = 0; index < devices; index++)
          yield { token: (++tokens).toString(16).padStart(64, "0"), platform: "ios" as const, topics: [topic] };
      };
      for await (const _ids of seedDevices(mongo.db("herald_registry"), project.id, wanted()));
    },
    send: async (topic: string): Promise<string> => {
      const notification = { title: "Hello", body: "World", targets: [`topic:${topic}`], ttl: 3600 };
      const answer = await request<{ data: { id: string } }>(
        `${local.gateway}/api/v1/notifications`,
        project.token,
        "POST",
        { notification },
      );
      return answer.data.id;
    },
    progress: async (id: string): Promise<Progress> => (await get<{ data: Progress }>(`/notifications/${id}`)).data,
    stop: async (): Promise<void> => {
      await mongo.close();
      await end(child);
      await rm(dataDir, { recursive: true, force: true });
    },
  };
};

export type System = Awaited<ReturnType<typeof startSystem>>;
