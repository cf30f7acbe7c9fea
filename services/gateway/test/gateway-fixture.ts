import { randomBytes } from "node:crypto";
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Bus, closeBus, connectBus, ensureStreams } from "@herald/bus";
import type { OperatorRole, Problem, ProjectGrant, ProjectId, Scope } from "@herald/contracts";
import { writeDocs } from "@herald/docs";
import { createLogger, readConfig } from "@herald/kit";
import { removeAtExit } from "@herald/provision";
import {
  type Broker,
  type BrokerOptions,
  eventually,
  type FaultyProxy,
  faultyProxy,
  type HttpAnswer,
  type Request,
  request,
  startBroker,
} from "@herald/testing";
import { createApp } from "../src/app.ts";
import { GatewayConfig } from "../src/config.ts";
import type { FixedLimits } from "../src/fixed-limits.ts";
import { checkDocumented } from "./documented.ts";
import { type Peers, startPeers } from "./peers/start-peers.ts";

export const adminToken = "admin-token-of-the-gateway-tests";
export const openKey = randomBytes(32).toString("base64");

export type Answered = HttpAnswer & { readonly problem: Problem };

export type TestProject = { readonly id: ProjectId; readonly token: string };

export type GatewayTest = {
  readonly broker: Broker;
  /** Between the gateway and the broker: cutting it makes the bus unavailable only for the gateway. */
  readonly proxy: FaultyProxy;
  /** The tests' own connection, which bypasses the proxy. */
  readonly bus: Bus;
  readonly peers: Peers;
  readonly address: () => string;
  /** `call("POST /api/v1/devices", { token, body })`. */
  readonly call: (route: string, call?: Request) => Promise<Answered>;
  readonly project: (name?: string) => Promise<TestProject>;
  readonly token: (project: TestProject, scopes: Scope[]) => Promise<string>;
  /** The token of a new operator, named after its role. */
  readonly operator: (role: OperatorRole, projects?: readonly ProjectGrant[]) => Promise<string>;
  /** The headers of a new session: its cookie and its CSRF token. */
  readonly session: (token: string) => Promise<{ cookie: string; "herald-csrf": string }>;
  readonly ready: () => Promise<void>;
  readonly stop: () => Promise<void>;
};

export type GatewayTestOptions = {
  readonly environment?: Record<string, string>;
  readonly broker?: BrokerOptions;
  readonly now?: () => Date;
  readonly heartbeatMs?: number;
  readonly drainTimeoutMs?: number;
  readonly limits?: Partial<FixedLimits>;
  /** The folder of the documentation; without it there is none. */
  readonly documents?: string;
};

/** The documentation in a folder of its own, as `npm run build` writes it. */
export const writtenDocuments = async (): Promise<string> => {
  const folder = await mkdtemp(join(tmpdir(), "herald-documents-"));
  removeAtExit(folder);
  await writeDocs(folder);
  return folder;
};

const silent = createLogger({ service: "test", level: "silent" });

export const configOf = (natsUrl: string, environment: Record<string, string> = {}): GatewayConfig =>
  readConfig(GatewayConfig, {
    HERALD_NATS_URL: natsUrl,
    HERALD_ADMIN_TOKEN: adminToken,
    HERALD_OPEN_KEYS: `k1:${openKey}`,
    HERALD_PORT: "0",
    HERALD_METRICS_PORT: "0",
    HERALD_LOG_LEVEL: "silent",
    ...environment,
  });

/** Makes one HTTP request, and checks that its route declares the response. */
export const callAt = async (base: string, route: string, call: Request = {}): Promise<Answered> => {
  const answer = await request(base, route, call);
  const [method = "", path = ""] = route.split(" ");
  if (/^\/(api|admin)\//.test(path)) checkDocumented(method, path, answer);
  return { ...answer, problem: answer.body };
};

/** A gateway on its own broker, with peers that answer its requests. */
export const startGatewayTest = async (options: GatewayTestOptions = {}): Promise<GatewayTest> => {
  const broker = await startBroker(options.broker);
  const proxy = await faultyProxy(broker.url);
  const bus = await connectBus({ url: broker.url, name: "gateway-test", log: silent });
  await ensureStreams(bus, { replicas: 1, sizeFactor: 0.02 });
  const peers = startPeers(bus);
  const { environment, broker: _, ...overrides } = options;
  const app = createApp(configOf(proxy.url, { ...broker.loginOf("gateway"), ...environment }), overrides);
  await app.start();
  const call = (route: string, one?: Request) => callAt(app.address(), route, one);
  const ready = () =>
    eventually(async () => {
      const { status, body } = await call("GET /readyz");
      if (status !== 200) throw new Error(JSON.stringify(body));
    });
  await ready();
  return {
    broker,
    proxy,
    bus,
    peers,
    address: app.address,
    call,
    ready,
    project: async (name = "Test") => {
      const { body } = await call("POST /admin/v1/projects", { token: adminToken, body: { project: { name } } });
      if (body.data === undefined) throw new Error(JSON.stringify(body));
      return { id: body.data.id, token: body.token };
    },
    token: async ({ id }, scopes) => {
      const body = { token: { name: scopes.join(" and "), scopes } };
      return (await call(`POST /admin/v1/projects/${id}/tokens`, { token: adminToken, body })).body.token;
    },
    operator: async (role, projects = []) => {
      const body = { operator: { name: role, role, projects } };
      return (await call("POST /admin/v1/operators", { token: adminToken, body })).body.token;
    },
    session: async (token) => {
      const { headers, body } = await call("POST /admin/v1/sessions", { token });
      const [cookie = ""] = headers.get("set-cookie")?.split(";") ?? [];
      return { cookie, "herald-csrf": body.data.csrf_token };
    },
    stop: async () => {
      await app.stop();
      await peers.stop();
      await closeBus(bus);
      await proxy.stop();
      await broker.stop();
    },
  };
};

/** A random push token in the form of APNs. */
export const apnsToken = (): string => randomBytes(32).toString("hex");
