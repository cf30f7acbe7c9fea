import { spawn } from "node:child_process";
import { createReadStream, createWriteStream } from "node:fs";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { bundle, bundleOf } from "@herald/bundle";
import { idTime } from "@herald/contracts";
import { checkInvariants } from "../../harness/invariants.ts";
import type { ServiceName, System } from "../../harness/system.ts";
import type { Row } from "../row.ts";
import { startTrial } from "../trial.ts";
import { bootstrap, clocked } from "./broker-lost.ts";

const root = join(import.meta.dirname, "../../..");
const services: readonly ServiceName[] = ["registry", "dispatch", "analytics"];
const finalWithinMs = 120_000;

const signalAll = (system: System, signal: NodeJS.Signals) => {
  for (const name of services) process.kill(system.services[name].pid(), signal);
};

/** Runs a part's program with `backup` or `restore`, as an operator does. Resolves to what it said. */
async function command(system: System, part: ServiceName | "broker", args: readonly string[], file: string) {
  const [program, env] =
    part === "broker"
      ? (["bus", { ...process.env, HERALD_NATS_URL: system.broker.url }] as const)
      : ([part, system.environmentOf(part)] as const);
  const child = spawn(process.execPath, [bundleOf(program), ...args], { cwd: root, env, stdio: "pipe" });
  let said = "";
  child.stderr.on("data", (text) => {
    said += text;
  });
  const ended = new Promise<number | null>((resolve) => child.on("close", resolve));
  await (args[0] === "backup"
    ? pipeline(child.stdout, createWriteStream(file))
    : // A program that refuses the file does not read it to its end.
      pipeline(createReadStream(file), child.stdin).catch(() => undefined));
  if ((await ended) !== 0) throw new Error(`${args.join(" ")} of ${part}: ${said}`);
  return said;
}

export const backup: Row = {
  name: "backup",
  fault:
    "backup of databases and broker during broadcasts, with registry, dispatch and analytics stopped; restored over later data",
  pass: "what was accepted before the backup ends; what is sent again is marked",
  fixture: clocked,
  run: async ({ use, folder }) => {
    await bundle(root, ["bus"]);
    const { system } = await use(clocked);
    const files = await folder();
    const trial = await startTrial(system);
    const parts = [...services, "broker"] as const;
    const fileOf = (part: string) => join(files, `${part}.backup`);
    await trial.broadcastUnderWay();
    await trial.broadcast();
    const before = new Date();
    signalAll(system, "SIGSTOP");
    for (const part of parts) await command(system, part, ["backup"], fileOf(part));
    signalAll(system, "SIGCONT");
    // These are lost, and what the backup still has to send is sent for the first time.
    await trial.broadcastUnderWay();
    await trial.goesOn();
    await trial.load.stop();

    signalAll(system, "SIGSTOP");
    const refused = await command(system, "registry", ["restore"], fileOf("registry")).then(
      () => "a restore into a full database was not refused",
      () => undefined,
    );
    if (refused) trial.problem(refused);
    for (const part of parts) await command(system, part, ["restore", "--replace"], fileOf(part));
    await bootstrap(system);
    await Promise.all([...services, "gateway" as const].map((name) => system.services[name].kill()));
    await system.ready();
    const recoveryMs = await trial.recovered();

    const stored = new Set<string>((await trial.project.notifications()).map(({ id }) => id));
    const promised = trial.promised().filter(({ id }) => stored.has(id) || idTime(id) <= before);
    const { lost, unmarked, wrong, repeated, deliveries } = await checkInvariants(system, trial.project, promised, {
      timeoutMs: finalWithinMs,
      events: false,
    });
    const kept = new Set(promised.map(({ id }) => id));
    // Devices got what came after the backup, and no database knows it any more.
    const ofLater = (line: string) => line.startsWith("ntf_") && !kept.has(line.split(/[ :]/)[0] ?? "");
    const problems = wrong.filter((line) => !ofLater(line)).slice(0, 20);
    if (repeated === 0) problems.push("nothing was sent again, so that the backup was not made in the middle");
    return {
      sent: promised.reduce((sum, { devices = 0 }) => sum + devices, 0),
      final: deliveries,
      lost: lost.length,
      repeated: { marked: repeated - unmarked.length, unmarked: unmarked.length },
      recoveryMs,
      problems,
      notes: [`${trial.promised().length - promised.length} of ${trial.promised().length} came after the backup`],
    };
  },
};
