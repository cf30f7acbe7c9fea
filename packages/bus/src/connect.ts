import { readFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { createFairGate, type FairGate, HeraldError, type Logger, type natsConfig } from "@herald/kit";
import { type JetStreamClient, type JetStreamManager, jetstream, jetstreamManager } from "@nats-io/jetstream";
import {
  AuthorizationError,
  connect,
  credsAuthenticator,
  type NatsConnection,
  nkeyAuthenticator,
  UserAuthenticationExpiredError,
} from "@nats-io/transport-node";
import type { z } from "zod";
import { notConnected, toBusError } from "./bus-error.ts";
import { createSuspects } from "./exclusion.ts";
import { type BusService, busUsers } from "./permissions/index.ts";
import { createTelemetry, type Telemetry } from "./telemetry.ts";

declare const opaque: unique symbol;

/** A connection to NATS, opaque outside of this package. */
export type Bus = { readonly [opaque]: true };

/** The type of a {@link Bus} inside this package. */
export type BusConnection = {
  readonly nc: NatsConnection;
  readonly js: JetStreamClient;
  readonly jsm: JetStreamManager;
  readonly log: Logger;
  readonly telemetry: Telemetry;
  readonly inboxPrefix: string | undefined;
  connected: boolean;
  /** Why and when (`performance.now()`) the last publish was refused; undefined if it was stored. */
  refused: { readonly reason: string; readonly at: number } | undefined;
  /** Called on every loss and every return of the connection. */
  readonly listeners: Set<(connected: boolean) => void>;
  /** Rejects pending requests: a lost connection loses their replies. */
  readonly waiting: Set<() => void>;
  /** Limit this process's concurrent requests: `requests` read a few rows, `heavyRequests` scan many. */
  readonly requests: FairGate;
  readonly heavyRequests: FairGate;
  readonly suspects: ReturnType<typeof createSuspects>;
};

export const connectionOf = (bus: Bus): BusConnection => bus as unknown as BusConnection;

export type ConnectOptions = {
  /** `nats://host:port`, or several servers of one cluster. */
  readonly url: string | readonly string[];
  /** The client name in the server's monitoring, such as `herald-registry`. */
  readonly name: string;
  readonly user?: string | undefined;
  readonly password?: string | undefined;
  /** The secret half of an nkey, `SU…`. Replaces user and password. */
  readonly nkeySeed?: string | undefined;
  /** The path of a `.creds` file with a user's JWT and seed. Replaces user, password and nkey. */
  readonly credsFile?: string | undefined;
  /** The prefix that the user may subscribe to; `_INBOX` when absent. */
  readonly inboxPrefix?: string | undefined;
  readonly log: Logger;
  /** Whether to wait for a server that is not running yet (default) or to throw bus-unavailable. A refused user throws in both cases. */
  readonly waitOnFirstConnect?: boolean;
};

/** A server that accepts no connection within this time does not answer. */
const dialTimeoutMs = 2_000;
/** A frozen server is noticed after two unanswered pings: 3 s. */
const pings = { pingInterval: 1_000, maxPingOut: 2 };
const reconnectEveryMs = 250;

/** A higher limit would only slow the database down: most of these requests share a few commands. */
const requestsAtATime = 128;
/** Each request occupies a database connection and a core of its server. The pool has 40 connections, and other work needs them too. */
const heavyRequestsAtATime = 8;
/** What they read is decoded, checked and encoded at once: more of them would hold up the answers to others, and end no sooner. */
const heavyRequestsOfProject = 2;

/** Connects, and then reconnects without limit. Throws HeraldError bus-unavailable, or an Error for a refused user. */
export const connectBus = async (options: ConnectOptions): Promise<Bus> => {
  const nc = await firstConnection(options);
  const problem = versionProblem(nc.info?.version ?? "");
  if (problem !== undefined) {
    await nc.close();
    throw new Error(problem);
  }
  const connection: BusConnection = {
    nc,
    js: jetstream(nc, { timeout: 5_000 }),
    // The check asks for an account-wide permission that a service does not have.
    jsm: await jetstreamManager(nc, { checkAPI: false, timeout: 5_000 }),
    log: options.log,
    inboxPrefix: options.inboxPrefix,
    telemetry: createTelemetry(),
    connected: true,
    refused: undefined,
    listeners: new Set(),
    waiting: new Set(),
    requests: createFairGate({ total: requestsAtATime, line: { perKey: 1_000, total: 4_000 } }),
    heavyRequests: createFairGate({
      total: heavyRequestsAtATime,
      perKey: heavyRequestsOfProject,
      line: { perKey: 100, total: 1_000 },
    }),
    suspects: createSuspects(),
  };
  void followStatus(connection, `NATS refuses ${describeLogin(options)}`);
  return connection as unknown as Bus;
};

const firstConnection = async (options: ConnectOptions): Promise<NatsConnection> => {
  let isReported = false;
  for (;;) {
    try {
      return await connect({
        servers: typeof options.url === "string" ? options.url : [...options.url],
        name: options.name,
        ...(await identity(options)),
        ...(options.inboxPrefix === undefined ? {} : { inboxPrefix: options.inboxPrefix }),
        timeout: dialTimeoutMs,
        ...pings,
        maxReconnectAttempts: -1,
        reconnectTimeWait: reconnectEveryMs,
        reconnectJitter: reconnectEveryMs,
        // A server that has restarted but not yet loaded its users must not end the service.
        ignoreAuthErrorAbort: true,
        // An async stack trace costs more than the request itself.
        noAsyncTraces: true,
      });
    } catch (cause) {
      if (cause instanceof AuthorizationError) {
        throw new Error(`NATS refuses ${describeLogin(options)}`, { cause });
      }
      if (options.waitOnFirstConnect === false)
        throw new HeraldError("bus-unavailable", "NATS cannot be reached", { cause });
      if (!isReported)
        options.log.warn(
          { err: cause },
          "NATS cannot be reached, waiting for it: check HERALD_NATS_URL, and that the server runs",
        );
      isReported = true;
      await sleep(reconnectEveryMs);
    }
  }
};

/** Reads the credentials for each attempt: their file may be mounted later, or replaced. */
const identity = async ({ user, password = "", nkeySeed, credsFile }: ConnectOptions) => {
  if (credsFile !== undefined) return { authenticator: credsAuthenticator(await readFile(credsFile)) };
  if (nkeySeed !== undefined) return { authenticator: nkeyAuthenticator(new TextEncoder().encode(nkeySeed)) };
  return user === undefined ? {} : { user, pass: password };
};

const describeLogin = ({ user = "", nkeySeed, credsFile }: ConnectOptions): string => {
  if (credsFile !== undefined) return `the credentials in ${credsFile}`;
  return nkeySeed === undefined
    ? `the user "${user}": check HERALD_NATS_USER and HERALD_NATS_PASSWORD`
    : "the nkey: check its seed";
};

/** `refusal`: the log line for a broker that no longer accepts the login, such as after its password changed. */
const followStatus = async (connection: BusConnection, refusal: string): Promise<void> => {
  const { log, nc } = connection;
  let isRefused = false;
  const change = (connected: boolean) => {
    if (connection.connected === connected) return;
    connection.connected = connected;
    connection.refused = undefined;
    if (!connected) for (const lost of connection.waiting) lost();
    for (const listener of connection.listeners) listener(connected);
  };
  for await (const status of nc.status()) {
    if (status.type === "disconnect" || status.type === "staleConnection") {
      if (connection.connected) log.warn({ server: nc.getServer() }, "NATS is unavailable");
      change(false);
    } else if (status.type === "reconnect") {
      isRefused = false;
      log.info({ server: nc.getServer() }, "NATS is back");
      change(true);
    } else if (status.type === "error" && isLoginError(status.error)) {
      // The client tries several times a second, and each attempt is refused.
      if (!isRefused) log.error({ err: status.error }, refusal);
      isRefused = true;
    } else if (status.type === "error") {
      log.error({ err: status.error }, "NATS reports an error");
    }
  }
  change(false);
};

const isLoginError = (error: Error): boolean =>
  error instanceof AuthorizationError || error instanceof UserAuthenticationExpiredError;

/** Resolves when the connection is up or `signal` is aborted. */
export const whenConnected = (connection: BusConnection, signal: AbortSignal): Promise<void> =>
  connection.connected || signal.aborted
    ? Promise.resolve()
    : new Promise((resolve) => {
        const end = () => {
          connection.listeners.delete(onConnection);
          signal.removeEventListener("abort", end);
          resolve();
        };
        const onConnection = (connected: boolean) => {
          if (connected) end();
        };
        connection.listeners.add(onConnection);
        signal.addEventListener("abort", end);
      });

/** Sends requests to JetStream. Throws bus-unavailable when the connection is down or the broker does not answer. */
export const askJetStream = async <Result>(
  { connected, jsm }: BusConnection,
  ask: (jsm: JetStreamManager) => Promise<Result>,
): Promise<Result> => {
  if (!connected) throw notConnected();
  try {
    return await ask(jsm);
  } catch (error) {
    throw toBusError(error);
  }
};

/** How long a refused publish keeps the bus unready. Afterwards the next publish decides. */
const refusalCountsMs = 10_000;

/**
 * For readiness: true, or a sentence with the problem. A connected broker that stores nothing, for example because its disk is full,
 * counts as unavailable; the last publish decides.
 */
export const busReady = (bus: Bus | undefined): true | string => {
  if (bus === undefined) return "NATS is unavailable";
  const { connected, nc, refused } = connectionOf(bus);
  if (!connected || nc.isClosed()) return "NATS is unavailable";
  if (refused === undefined || performance.now() - refused.at > refusalCountsMs) return true;
  return `NATS stores nothing: ${refused.reason}`;
};

/** Flushes, then closes. Closes at once when the server is unavailable. */
export const closeBus = async (bus: Bus): Promise<void> => {
  const connection = connectionOf(bus);
  if (connection.nc.isClosed()) return;
  if (connection.connected) await connection.nc.drain().catch(() => connection.nc.close());
  else await connection.nc.close();
};

/** The first version with scheduled messages and atomic batches. An older server would silently ignore these settings of streams. */
const minimum = [2, 12] as const;

/** Why Herald cannot work with a server of this version, in words; undefined if it can. */
export const versionProblem = (version: string): string | undefined => {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  if (major > minimum[0] || (major === minimum[0] && minor >= minimum[1])) return undefined;
  return `the nats-server at HERALD_NATS_URL is ${version}, and Herald needs ${minimum.join(".")} or later: upgrade it first`;
};

/** The connect options of a service: the environment's, plus the only inbox that its user may subscribe to. */
export const serviceAccess = (config: z.infer<z.ZodObject<typeof natsConfig>>, part: BusService | "bootstrap") => ({
  url: config.HERALD_NATS_URL,
  name: `herald-${part}`,
  user: config.HERALD_NATS_USER,
  password: config.HERALD_NATS_PASSWORD,
  nkeySeed: config.HERALD_NATS_NKEY_SEED,
  credsFile: config.HERALD_NATS_CREDS_FILE,
  inboxPrefix: busUsers[part].inboxPrefix,
});
