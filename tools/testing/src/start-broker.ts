import { randomBytes } from "node:crypto";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type BusUserName, busUsers } from "@herald/bus/permissions";
import { freePort, natsAccounts, newPasswords, ownLogins, removeAtExit, startNatsServer } from "@herald/provision";
import { jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { inject } from "vitest";
import { natsContainer } from "./containers.ts";
import { eventually } from "./eventually.ts";
import type { BrokerSource } from "./provided.ts";

export type Broker = {
  url: string;
  /** The credentials of a shared server. A test file's own broker treats a connection without credentials as the administrator. */
  user?: string;
  password?: string;
  /** The environment with which a part of Herald logs in as its own user. On a shared server all parts use the same user. */
  loginOf: (name: BusUserName) => { HERALD_NATS_USER?: string; HERALD_NATS_PASSWORD?: string };
  /** The folder of its store; empty if this process did not start the broker. */
  dataDir: string;
  /** Crashes it with SIGKILL. Acked messages stay on disk. */
  kill: () => Promise<void>;
  /** Stops it gracefully if it runs, and starts it on the same port with the same store. */
  restart: () => Promise<void>;
  /** Suspends it without closing its connections, as on an overloaded machine. */
  freeze: () => Promise<void>;
  thaw: () => Promise<void>;
  /** Gives every user a new password, which `loginOf` has from then on; the server ends the connections with the old ones. */
  changePasswords?: () => Promise<void>;
  /** Stops it and removes the store. */
  stop: () => Promise<void>;
};

export type BrokerOptions = {
  /** fsync before each ack, as in production. Off by default, because tests need not survive a power failure. */
  syncAlways?: boolean;
  /** An existing folder for its store, for example on a small disk; it is not removed. Only if brokers are processes. */
  folder?: string;
};

/**
 * Starts this test file's own broker: streams have fixed names, so two files on one broker would read each other's messages. With
 * HERALD_NATS_URL all files share that server and run one after another. Outside vitest the caller passes the source.
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

const somePasswords = () => newPasswords(() => randomBytes(12).toString("hex"));
const passwords = somePasswords();
const logins = ownLogins(passwords);
const environmentOf = ({ user, password }: Pick<Broker, "user" | "password">) => ({
  ...(user && { HERALD_NATS_USER: user }),
  ...(password && { HERALD_NATS_PASSWORD: password }),
});
const loginOf = (name: BusUserName) => environmentOf(logins.of(name));
/** Tests inspect everything and act as every part, so a client without a user is the administrator. */
const accountsOf = (known: typeof passwords) =>
  `${natsAccounts(known)}no_auth_user: ${JSON.stringify(busUsers.admin.user)}\n`;
const accounts = accountsOf(passwords);

/** Starts a broker with Herald's users from this binary. */
export async function processBroker(
  binary: string,
  { syncAlways = false, folder = tmpdir(), extraConfig = "" }: BrokerOptions & { extraConfig?: string },
): Promise<Broker> {
  const dataDir = await mkdtemp(join(folder, "herald-test-nats-"));
  removeAtExit(dataDir);
  const port = await freePort(); // nobody else takes it during a restart
  let current = passwords;
  const configured = () => `${accountsOf(current)}${extraConfig}`;
  const start = () => startNatsServer(binary, { dataDir, port, extraConfig: configured(), syncAlways });
  let running = await start();
  return {
    url: `nats://127.0.0.1:${port}`,
    loginOf: (name) => environmentOf(ownLogins(current).of(name)),
    dataDir,
    kill: async () => {
      running.process.signal("SIGKILL");
      await running.process.exited;
    },
    restart: async () => {
      await running.process.stop();
      running = await start();
    },
    freeze: async () => {
      running.process.signal("SIGSTOP");
      await eventually(async () => {
        if (await isRunning(running.process.pid)) throw new Error("the broker still runs");
      });
    },
    thaw: async () => running.process.signal("SIGCONT"),
    changePasswords: async () => {
      current = somePasswords();
      await running.reload(configured());
    },
    stop: async () => {
      // Its data is deleted below, and to stop in good order with all streams takes a third of a second.
      running.process.signal("SIGKILL");
      await running.process.stop();
      const refused = await refusedToServices(dataDir);
      await rm(dataDir, { recursive: true, force: true });
      if (refused.length > 0) throw new Error(`the broker refused what a service needs:\n${refused.join("\n")}`);
    },
  };
}

/** Whether a thread of the process is not suspended yet: each stops a moment after the signal, and may answer until then. Linux only. */
const isRunning = async (pid: number): Promise<boolean> => {
  const threads = await readdir(`/proc/${pid}/task`).catch(() => []);
  const states = await Promise.all(
    threads.map((thread) => readFile(`/proc/${pid}/task/${thread}/stat`, "utf8").catch(() => "")),
  );
  return states.some((state) => /\) [^Tt]/.test(state));
};

/** Permission violations of Herald's services in the server's log. Each means that a contract is missing in bus-users.ts. */
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

/** Empties the server first, because this file would read messages that the previous file left. */
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
  return { url, ...login, loginOf: () => environmentOf(server), dataDir: "", ...faults, stop: async () => {} };
}
