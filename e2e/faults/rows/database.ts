import { setTimeout as delay } from "node:timers/promises";
import { freePort, type RunningServer, startMongo } from "@herald/local-stack";
import { NotHere, type Row, type Stage } from "../row.ts";
import { startTrial } from "../trial.ts";
import { expectDatabaseUnavailable } from "../unavailable.ts";

const rows = {
  stop: "the database stopped for 60 s (short: 15 s)",
  kill: "the database killed, unavailable for 60 s (short: 15 s)",
  freeze: "the database frozen by SIGSTOP for 60 s (short: 15 s)",
  cut: "every connection to the database broken, and none let through for 60 s (short: 15 s)",
} as const;

/** Starts a server that the row can break, if wanted with a password. Throws NotHere if the database is not a local process. */
export async function startDatabase({ defer, folder }: Pick<Stage, "defer" | "folder">, password?: string) {
  const [dataDir, port] = [await folder(), await freePort()];
  const begin = () =>
    startMongo({ dataDir, port, ...(password !== undefined && { password }), env: process.env, progress: () => {} });
  let server: RunningServer = await begin();
  defer(() => server.stop());
  if (server.pids.length === 0) throw new NotHere(`the database is not a process of ours: ${server.source.why}`);
  const signal = (name: NodeJS.Signals) => {
    for (const pid of server.pids) process.kill(pid, name);
  };
  return {
    url: server.url,
    /** Absent: the database has no password. */
    setPassword: server.setPassword,
    stop: () => server.stop(),
    kill: async () => {
      const { ended } = server;
      signal("SIGKILL");
      await ended;
    },
    freeze: () => signal("SIGSTOP"),
    thaw: () => signal("SIGCONT"),
    /** Starts it again, on the same port with the same data. */
    begin: async () => {
      server = await begin();
    },
  };
}

const databaseRow = (how: keyof typeof rows): Row => ({
  name: `database-${how}`,
  fault: rows[how],
  pass: "sends are still 202; no duplicate",
  run: async (stage) => {
    const { long, start } = stage;
    const server = await startDatabase(stage);
    const system = await start({ mongoUrl: server.url });
    const trial = await startTrial(system);
    const broadcast = await trial.broadcastUnderWay();

    if (how === "cut") await system.database.cut();
    else if (how === "freeze") server.freeze();
    else if (how === "kill") await server.kill();
    else await server.stop();
    const answered = new Map(trial.load.answers);
    const taken = trial.load.promised.length;
    const until = Date.now() + (long ? 60_000 : 15_000);
    if (how !== "freeze") await expectDatabaseUnavailable(system, trial, broadcast);
    while (Date.now() < until) {
      await trial.broadcast();
      await delay(2_000);
    }
    for (const [status, count] of trial.load.answers)
      if (status !== 202 && count > (answered.get(status) ?? 0))
        trial.problem(`a send was answered ${status} while the database was unavailable`);

    if (trial.load.promised.length <= taken + 10)
      trial.problem("next to nothing was accepted while it was unavailable");

    if (how === "cut") await system.database.heal();
    else if (how === "freeze") server.thaw();
    else await server.begin();
    await trial.recovered();
    await system.ready();
    const findings = await trial.finish({ timeoutMs: 120_000 });
    const { marked } = findings.repeated;
    return marked === 0 ? findings : { ...findings, problems: [...findings.problems, `${marked} duplicates`] };
  },
});

export const databaseRows: readonly Row[] = (["stop", "kill", "freeze", "cut"] as const).map(databaseRow);
