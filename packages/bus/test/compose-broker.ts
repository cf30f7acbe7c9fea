import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { type BusUserName, busUsers, passwordVariables } from "@herald/bus/permissions";
import { freePort, removeAtExit, startProcess } from "@herald/provision";
import { eventually } from "@herald/testing";
import { connect } from "@nats-io/transport-node";
import { onTestFinished } from "vitest";

const infra = join(import.meta.dirname, "../../../infra");
export const userNames = Object.keys(busUsers) as BusUserName[];
type Passwords = Readonly<Record<BusUserName, string>>;

/** `infra/start-nats` and `infra/nats.conf` with a real nats-server, as compose and Kubernetes start it. */
export const composeBroker = async (binary: string, passwords: Passwords) => {
  const folder = await mkdtemp(join(tmpdir(), "herald-compose-broker-"));
  removeAtExit(folder);
  const port = await freePort();
  const text = (await readFile(join(infra, "nats.conf"), "utf8"))
    .replace("0.0.0.0:4222", `127.0.0.1:${port}`)
    .replace(/^http: .*\n/m, "")
    .replace('"/data"', JSON.stringify(join(folder, "store")));
  const configuration = join(folder, "nats.conf");
  await writeFile(configuration, text);
  await writeFile(join(folder, "consumers.conf"), "");
  const environment = Object.fromEntries(userNames.map((name) => [passwordVariables[name], passwords[name]]));
  const servers = `127.0.0.1:${port}`;
  const logIn = async (name: BusUserName, pass = passwords[name]) => {
    const { user, inboxPrefix = "_INBOX" } = busUsers[name];
    return connect({ servers, user, pass, inboxPrefix, reconnect: false });
  };
  let server: Awaited<ReturnType<typeof startProcess>> | undefined;
  onTestFinished(async () => {
    await server?.stop();
    await rm(folder, { recursive: true, force: true });
  });
  return {
    servers,
    logIn,
    /** Starts or restarts the server, and waits until it answers. `storage` is what .env sets, if anything. */
    start: async (storage = "8GiB") => {
      await server?.stop();
      server = await startProcess({
        name: "nats-server",
        command: "/bin/sh",
        args: [join(infra, "start-nats"), "-c", configuration],
        env: {
          ...environment,
          HERALD_NATS_STORAGE: storage,
          PATH: `${dirname(binary)}:/usr/bin:/bin`,
        },
        stopSignal: "SIGINT",
        stopTimeoutMs: 15_000,
        output: { file: join(folder, "log") },
      });
      await eventually(async () => (await logIn("gateway")).close());
    },
  };
};
