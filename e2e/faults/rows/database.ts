import { setTimeout as delay } from "node:timers/promises";
import { freePort, type RunningServer, startMongo } from "@herald/provision";
import { eventually, expectStatus } from "@herald/testing";
import type { System } from "../../harness/system.ts";
import { type Fixture, NotHere, type Row, type Stage } from "../row.ts";
import { startTrial, type Trial } from "../trial.ts";
import { expectDatabaseUnavailable } from "../unavailable.ts";

const rows = {
  stop: "the database stopped for 60 s (short: 8 s)",
  kill: "the database killed, unavailable for 60 s (short: 8 s)",
  freeze: "the database frozen by SIGSTOP for 60 s (short: 8 s)",
  cut: "every connection to the database broken, and none let through for 60 s (short: 8 s)",
} as const;

type Database = Awaited<ReturnType<typeof startDatabase>>;

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

/** A system with a database of its own, which rows can break. */
export const ownDatabase: Fixture<{ readonly system: System; readonly server: Database }> = {
  open: async (stage) => {
    const server = await startDatabase(stage);
    return { system: await stage.start({ mongoUrl: server.url }), server };
  },
};

/** A Live Activity on one phone, which is written and ended, and a second one that begins, while the database is unavailable. */
const startActivity = async (system: System, trial: Trial) => {
  const project = await system.project("Orders");
  const { device } = await project.register();
  const card = await system.simulators.startInstance("com.example.e2e", "OrderAttributes");
  const made = { attributes_type: "OrderAttributes", attributes: {}, start: false, targets: [device.id] };
  const write = async (route: string, activity: object) => {
    const { status, text } = await project.call(route, { body: { activity } });
    if (status !== 202) trial.problem(`${route} was answered ${status}: ${text.slice(0, 200)}`);
  };
  const shows = async (state: string, last: number) =>
    eventually(
      async () => {
        const [shown] = await system.simulators.instances(card.token ?? "");
        const newest = shown?.shown.at(-1)?.contentState as { n?: number } | undefined;
        if (newest?.n !== last || shown?.state !== state) throw new Error(`the card is ${JSON.stringify(shown)}`);
      },
      { timeoutMs: 120_000 },
    ).catch((error: Error) => trial.problem(error.message));
  await write("PUT /activities/running", { ...made, content_state: { n: 1 } });
  const body = { token: { token: card.token } };
  expectStatus(await project.call(`PUT /devices/${device.id}/tokens/activity/running`, { body }), 204);
  await shows("active", 1);
  return {
    whileUnavailable: async () => {
      for (const n of [2, 3]) await write("PATCH /activities/running", { content_state: { n } });
      await write("PUT /activities/new", { ...made, content_state: { n: 1 } });
      await write("POST /activities/running/end", { content_state: { n: 4 } });
    },
    ends: () => shows("ended", 4),
  };
};

const databaseRow = (how: keyof typeof rows): Row => ({
  name: `database-${how}`,
  fault: rows[how],
  pass: "sends and activity states are still 202; no repeat; the card ends with its newest state",
  fixture: ownDatabase,
  run: async ({ long, use }) => {
    const { system, server } = await use(ownDatabase);
    const trial = await startTrial(system);
    const activity = await startActivity(system, trial);
    const broadcast = await trial.broadcastUnderWay();

    if (how === "cut") await system.database.cut();
    else if (how === "freeze") server.freeze();
    else if (how === "kill") await server.kill();
    else await server.stop();
    const answered = new Map(trial.load.answers);
    const taken = trial.load.promised.length;
    const until = Date.now() + (long ? 60_000 : 8_000);
    if (how !== "freeze") await expectDatabaseUnavailable(system, trial, broadcast);
    await activity.whileUnavailable();
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
    await activity.ends();
    const findings = await trial.finish({ timeoutMs: 120_000 });
    const { marked } = findings.repeated;
    return marked === 0 ? findings : { ...findings, problems: [...findings.problems, `${marked} duplicates`] };
  },
});

export const databaseRows: readonly Row[] = (["stop", "kill", "freeze", "cut"] as const).map(databaseRow);
