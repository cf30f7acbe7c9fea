import { randomBytes } from "node:crypto";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type BusUserName, busUsers } from "@herald/bus/permissions";
import { natsAccounts, newPasswords, ownLogins, removeAtExit, startNatsServer } from "@herald/local-stack";
import { jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { inject } from "vitest";
import { natsContainer } from "./containers.ts";
import type { BrokerSource } from "./provided.ts";

export type Broker = {
  url: string;
  /** The credentials that a shared server requires. A broker of one's own treats a connection without credentials as the administrator. */
  user?: string;
  password?: string;
  /** The environment in which a part of Herald is its own user here; on a shared server everyone is the same. */
  loginOf: (name: BusUserName) => { HERALD_NATS_USER?: string; HERALD_NATS_PASSWORD?: string };
  /** Where its store is; empty when it is not a process of ours. */
  dataDir: string;
  /** As a crash: SIGKILL. What was acknowledged is still on disk. */
  kill: () => Promise<void>;
  /** Ends it in good order when it runs, and starts it on the same port with the same store. */
  restart: () => Promise<void>;
  /** Stops it from running without closing its connections, as an overloaded machine does. */
  freeze: () => Promise<void>;
  thaw: () => Promise<void>;
  /** For good; removes the store. */
  stop: () => Promise<void>;
};

export type BrokerOptions = {
  /** fsync before each acknowledgement, as production does; tests that survive no power failure do without. */
  syncAlways?: boolean;
  /** An existing folder for its store, such as one on a small disk; it stays. Only where brokers are processes. */
  folder?: string;
};

/**
 * A broker of this test file's own: streams have fixed names, so two files on one broker would read each other's
 * messages. With HERALD_NATS_URL it is that server for all files, which then run one after another. Outside of vitest the
 * source is given.
 */
export async function startBroker(
  options: BrokerOptions = {},
  source: BrokerSource = inject("heraldBrokerSource"),
): Promise<Broker> {
  switch (source.kind) {
    case "shared":
      return sharedBroker(source);
    case "container":
      return containerBroker(options);
    case "binary":
      return processBroker(source.path, options);
  }
}

const passwords = newPasswords(() => randomBytes(12).toString("hex"));
const logins = ownLogins(passwords);
const loginOf = (name: BusUserName) => {
  const { user, password } = logins.of(name);
  return { ...(user && { HERALD_NATS_USER: user }), ...(password && { HERALD_NATS_PASSWORD: password }) };
};
/** Tests look at everything and play every part, so a client that names no user is the administrator. */
const accounts = `${natsAccounts(passwords)}no_auth_user: ${JSON.stringify(busUsers.admin.user)}\n`;

/** A broker from this binary, which has Herald's users. */
export async function processBroker(
  binary: string,
  { syncAlways = false, folder = tmpdir(), extraConfig = "" }: BrokerOptions & { extraConfig?: string },
): Promise<Broker> {
  const dataDir = await mkdtemp(join(folder, "herald-test-nats-"));
  removeAtExit(dataDir);
  const start = (port: number) =>
    startNatsServer(binary, { dataDir, port, extraConfig: `${accounts}${extraConfig}`, syncAlways });
  let running = await start(0);
  const { port } = running;
  return {
    url: `nats://127.0.0.1:${port}`,
    loginOf,
    dataDir,
    kill: async () => {
      running.process.signal("SIGKILL");
      await running.process.exited;
    },
    restart: async () => {
      await running.process.stop();
      running = await start(port);
    },
    freeze: async () => running.process.signal("SIGSTOP"),
    thaw: async () => running.process.signal("SIGCONT"),
    stop: async () => {
      await running.process.stop();
      const refused = await refusedToServices(dataDir);
      await rm(dataDir, { recursive: true, force: true });
      if (refused.length > 0) throw new Error(`the broker refused what a service needs:\n${refused.join("\n")}`);
    },
  };
}

/** What a part of Herald was not allowed to do, by the server's log: a contract that is missing in the tables of bus-access.ts. */
async function refusedToServices(dataDir: string): Promise<string[]> {
  const log = await readFile(join(dataDir, "nats-server.log"), "utf8").catch(() => "");
  return [...new Set(log.match(/nats\.js:herald-\w+".* Violation .*/g))];
}

async function containerBroker(options: BrokerOptions): Promise<Broker> {
  const sync = options.syncAlways ? "always" : '"2m"';
  const jetstream = `jetstream { store_dir: "/tmp/store", sync_interval: ${sync} }`;
  const { container, engine, port } = await natsContainer(`${jetstream}\n${accounts}`);
  return {
    url: `nats://${container.getHost()}:${port}`,
    loginOf,
    dataDir: "",
    kill: () => engine.kill(),
    restart: async () => {
      const { State } = await engine.inspect();
      if (State.Running) await engine.stop();
      await engine.start();
    },
    freeze: () => engine.pause(),
    thaw: () => engine.unpause(),
    stop: async () => {
      await container.stop();
    },
  };
}

/** Emptied first: what the file before left would be read by this one. */
async function sharedBroker(server: { url: string; user?: string; password?: string }): Promise<Broker> {
  const { url, user, password } = server;
  const connection = await connect({ servers: url, ...(user && { user, pass: password ?? "" }) });
  const manager = await jetstreamManager(connection);
  for await (const name of manager.streams.names()) await manager.streams.delete(name);
  await connection.close();

  const refuse = async () => {
    throw new Error("This test takes its broker down, so it needs one of its own: run it without HERALD_NATS_URL");
  };
  const faults = { kill: refuse, restart: refuse, freeze: refuse, thaw: refuse };
  const login = { ...(user && { user }), ...(password && { password }) };
  const everyone = {
    ...(user && { HERALD_NATS_USER: user }),
    ...(password && { HERALD_NATS_PASSWORD: password }),
  };
  return { url, ...login, loginOf: () => everyone, dataDir: "", ...faults, stop: async () => {} };
}
