import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { type BusUserName, busUsers, passwordVariables } from "@herald/bus/permissions";
import { freePort, removeAtExit, startProcess } from "@herald/local-stack";
import { eventually } from "@herald/testing";
import { connect } from "@nats-io/transport-node";
import { expect, inject, onTestFinished, test } from "vitest";

/** `infra/start-nats` and `infra/nats.conf` with a real nats-server, as compose and Kubernetes start it. */

const infra = join(import.meta.dirname, "../../../infra");
const names = Object.keys(busUsers) as BusUserName[];

const start = async (binary: string, passwords: Readonly<Record<BusUserName, string>>): Promise<string> => {
  const folder = await mkdtemp(join(tmpdir(), "herald-passwords-"));
  removeAtExit(folder);
  const port = await freePort();
  const text = (await readFile(join(infra, "nats.conf"), "utf8"))
    .replace("0.0.0.0:4222", `127.0.0.1:${port}`)
    .replace(/^http: .*\n/m, "")
    .replace('"/data"', JSON.stringify(join(folder, "store")));
  const configuration = join(folder, "nats.conf");
  await writeFile(configuration, text);
  await writeFile(join(folder, "consumers.conf"), "");
  const environment = Object.fromEntries(names.map((name) => [passwordVariables[name], passwords[name]]));
  const server = await startProcess({
    name: "nats-server",
    command: "/bin/sh",
    args: [join(infra, "start-nats"), "-c", configuration],
    env: { ...environment, PATH: `${dirname(binary)}${delimiter}${process.env.PATH}` },
    stopSignal: "SIGINT",
    stopTimeoutMs: 15_000,
    output: { file: join(folder, "log") },
  });
  onTestFinished(async () => {
    await server.stop();
    await rm(folder, { recursive: true, force: true });
  });
  return `127.0.0.1:${port}`;
};

const rounds = [
  ["12e", "12e4", "1234", "true", "$x", "two words", `"double" and 'single'`],
  ["back\\slash\\", "{a: b}", "[1, 2]", "a;b,c=d", "# none", "0x12k ", "ünï"],
];

test.for(rounds)("each user logs in with its password: %s, …", async (values, { skip }) => {
  const source = inject("heraldBrokerSource");
  if (source.kind !== "binary") return skip("the broker is not a process of ours");
  const passwords = Object.fromEntries(names.map((name, at) => [name, values[at]])) as Record<BusUserName, string>;
  const servers = await start(source.path, passwords);
  const logIn = async (name: BusUserName, pass: string) => {
    const { user, inboxPrefix = "_INBOX" } = busUsers[name];
    await (await connect({ servers, user, pass, inboxPrefix, reconnect: false })).close();
  };
  await eventually(() => logIn("gateway", passwords.gateway));
  for (const name of names) await logIn(name, passwords[name]);
  await expect(logIn("gateway", "another")).rejects.toThrow(/authoriz/i);
});
