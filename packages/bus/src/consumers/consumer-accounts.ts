import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile, writeFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { jetstream } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { type BusUser, consumedStream } from "../permissions/index.ts";

/** Matches an account's block as `renderConsumerAccount` writes it. The block ends at the first brace at the start of a line. */
const blockOf = (account: string) => new RegExp(`^"${account}": \\{\\n(?:.*\\n)*?\\}\\n`, "m");

/** Replaces the account's block in the text, or removes it. */
export const withAccount = (text: string, account: string, block: string | undefined): string => {
  const rest = text.replace(blockOf(account), "");
  if (block === undefined) return rest;
  return `${rest}${rest === "" || rest.endsWith("\n") ? "" : "\n"}${block}\n`;
};

/** Changes one account in the file that nats-server's configuration includes. */
export const putAccount = async (path: string, account: string, block: string | undefined): Promise<void> => {
  await writeFile(path, withAccount(await readFile(path, "utf8"), account, block));
};

/** Runs the operator's command that makes nats-server reload its configuration. False: none is given. */
export const reload = async (command: string | undefined): Promise<boolean> => {
  if (command === undefined) return false;
  const running = spawn("sh", ["-c", command], { stdio: ["ignore", "inherit", "inherit"] });
  const [code] = await once(running, "exit");
  if (code !== 0) throw new Error(`${command}: ended with ${code}`);
  return true;
};

/** nats-server reloads its configuration within moments. After this time the reload has failed. */
const patienceMs = 15_000;
/** nats-server 2.15.2 connects the imports of a new account only at the reload after the one that added the account. */
const askAgainMs = 1_000;

/** Reloads until the server accepts the user and shows it its durable; throws the server's error otherwise. False: no command is given. */
export const waitForAccess = async (
  command: string | undefined,
  { url, user, password }: { url: string; user: BusUser; password: string },
): Promise<boolean> => {
  const until = Date.now() + patienceMs;
  for (;;) {
    if (!(await reload(command))) return false;
    await sleep(askAgainMs);
    try {
      const { user: name, inboxPrefix } = user;
      const nc = await connect({ servers: url, user: name, pass: password, inboxPrefix, reconnect: false });
      try {
        await jetstream(nc).consumers.get(consumedStream, name);
      } finally {
        await nc.close();
      }
      return true;
    } catch (cause) {
      if (Date.now() < until) continue;
      throw new Error(`nats-server does not let ${user.user} in: has it read the accounts?`, { cause });
    }
  }
};
