import { setTimeout as delay } from "node:timers/promises";
import { freePort, type RunningServer, startMongo } from "@herald/local-stack";
import { NotHere, type Row } from "../row.ts";
import { startTrial } from "../trial.ts";

const rows = {
  stop: "the database stopped for 60 s (short: 15 s)",
  kill: "the database killed, away for 60 s (short: 15 s)",
  freeze: "the database frozen by SIGSTOP for 60 s (short: 15 s)",
} as const;

const databaseRow = (how: keyof typeof rows): Row => ({
  name: `database-${how}`,
  fault: rows[how],
  pass: "sends are still 202; no duplicate",
  run: async ({ long, start, defer, folder }) => {
    const dataDir = await folder();
    const port = await freePort();
    const begin = () => startMongo({ dataDir, port, env: process.env, progress: () => {} });
    let server: RunningServer = await begin();
    defer(() => server.stop());
    if (server.pids.length === 0) throw new NotHere(`the database is not a process of ours: ${server.source.why}`);
    const system = await start({ mongoUrl: server.url });
    const trial = await startTrial(system);
    await trial.broadcastUnderWay();

    const signal = (name: NodeJS.Signals) => {
      for (const pid of server.pids) process.kill(pid, name);
    };
    const { ended } = server;
    if (how === "freeze") signal("SIGSTOP");
    else if (how === "kill") signal("SIGKILL");
    else await server.stop();
    if (how === "kill") await ended;
    const answered = new Map(trial.load.answers);
    const until = Date.now() + (long ? 60_000 : 15_000);
    while (Date.now() < until) {
      await trial.broadcast();
      await delay(2_000);
    }
    for (const [status, count] of trial.load.answers)
      if (status !== 202 && count > (answered.get(status) ?? 0))
        trial.problem(`a send was answered ${status} while the database was away`);

    if (how === "freeze") signal("SIGCONT");
    else server = await begin();
    await trial.recovered();
    await system.ready();
    const findings = await trial.finish({ timeoutMs: 120_000 });
    const { marked } = findings.repeated;
    return marked === 0 ? findings : { ...findings, problems: [...findings.problems, `${marked} duplicates`] };
  },
});

export const databaseRows: readonly Row[] = (["stop", "kill", "freeze"] as const).map(databaseRow);
