import { spawn } from "node:child_process";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { jetstream } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { type BusUser, consumedStream } from "../permissions/index.ts";

/** Runs the operator's command that has nats-server read its configuration again. False: none is given. */
export const reload = async (command: string | undefined): Promise<boolean> => {
  if (command === undefined) return false;
  const running = spawn("sh", ["-c", command], { stdio: ["ignore", "inherit", "inherit"] });
  const [code] = await once(running, "exit");
  if (code !== 0) throw new Error(`${command}: ended with ${code}`);
  return true;
};

/** A configuration is read within moments; after this it was not. */
const patienceMs = 15_000;
/** nats-server 2.15.2 connects what a new account imports at the reload after the one that brought it. */
const askAgainMs = 1_000;

/** Reloads until the server lets the user in and shows it its durable; throws what it says otherwise. False: no command is given. */
export const waitForAccess = async (
  command: string | undefined,
  { url, user, password }: { url: string; user: BusUser; password: string },
): Promise<boolean> => {
  const until = Date.now() + patienceMs;
  for (;;) {
    if (!(await reload(command))) return false;
    await sleep(askAgainMs);
    try {
      await readDurable(url, user, password);
      return true;
    } catch (cause) {
      if (Date.now() < until) continue;
      throw new Error(`nats-server does not let ${user.user} in: has it read the accounts?`, { cause });
    }
  }
};

const readDurable = async (url: string, { user, inboxPrefix }: BusUser, pass: string): Promise<void> => {
  const nc = await connect({ servers: url, user, pass, inboxPrefix, reconnect: false });
  try {
    await jetstream(nc).consumers.get(consumedStream, user);
  } finally {
    await nc.close();
  }
};
