import { setTimeout as delay } from "node:timers/promises";
import { eventually, operateBroker } from "@herald/testing";
import { compareStatistics } from "../../harness/compare-statistics.ts";
import { type System, serviceNames } from "../../harness/system.ts";
import type { Findings, Fixture, Row, Stage } from "../row.ts";
import { randomMoment, startTrial, type Trial } from "../trial.ts";
import { ownDatabase } from "./database.ts";

/** Each send is read back one by one, which costs more than to send it. */
const perSecond = { long: 300, short: 150 };
/** Pause between two kills, before the first and after the last. */
const quietMs = { long: 3_500, short: 1_000 };

/** How long broker or database are down: no supervisor restarts them. */
const unavailableMs = 2_000;

type Victims = {
  readonly name: string;
  /** Who dies, one after another. */
  readonly fault: string;
  readonly fixture?: Fixture<unknown>;
  readonly prepare: (stage: Stage) => Promise<{ readonly system: System; readonly kills: readonly Kill[] }>;
};

const victims: readonly Victims[] = [
  {
    name: "services",
    fault: "each service",
    prepare: async ({ shared }) => {
      const system = await shared();
      return { system, kills: serviceNames.map((name) => () => system.services[name].kill()) };
    },
  },
  {
    name: "nats",
    fault: "NATS",
    prepare: async ({ shared }) => {
      const system = await shared();
      const kill = async () => {
        await system.broker.kill();
        await delay(unavailableMs);
        await system.broker.restart();
      };
      return { system, kills: [kill] };
    },
  },
  {
    name: "database",
    fault: "the database",
    fixture: ownDatabase,
    prepare: async ({ use }) => {
      const { system, server } = await use(ownDatabase);
      const kill = async () => {
        await server.kill();
        await delay(unavailableMs);
        await server.begin();
      };
      return { system, kills: [kill] };
    },
  },
];

/** Notes the rate of accepted sends, which refusals of the gateway reduce. */
const noteRate = (trial: Trial, ms: number): void => {
  const { promised, answers } = trial.load;
  const refused = [...answers].filter(([status]) => status !== 202).map(([status, count]) => `${count} × ${status}`);
  const rate = Math.round((1_000 * promised.length) / ms);
  trial.note(`${promised.length} single sends, ${rate} a second; refused and tried again: ${refused.join(", ") || 0}`);
};

type Kill = () => Promise<void>;

/** Kills these one after another under load. */
const killUnderLoad = async (stage: Stage, system: System, kills: readonly Kill[]): Promise<Findings> => {
  const { long, defer } = stage;
  const hands = await operateBroker(system.broker);
  defer(() => hands.close());
  const trial = await startTrial(system, { each: 1, script: [], perSecond: perSecond[long ? "long" : "short"] });
  const begun = performance.now();
  for (let round = 0; round < (long ? 15 : 1); round++)
    for (const kill of kills) {
      await delay(quietMs[long ? "long" : "short"]);
      await randomMoment(500);
      await kill();
      await Promise.all([trial.recovered(), system.ready()]);
    }
  await delay(quietMs[long ? "long" : "short"]);
  await trial.load.stop();
  noteRate(trial, performance.now() - begun);
  const findings = await trial.finish({ timeoutMs: 120_000 });
  for (const problem of await compareStatistics(trial.project)) trial.problem(problem);
  // The end of every notification must be published.
  for (const durable of ["dispatch-send-groups", "dispatch-single-sends"] as const)
    await eventually(async () => {
      const left = await hands.left("PUSH_SEND", durable);
      if (left > 0) throw new Error(`${durable} has ${left} messages left`);
    }).catch((error: Error) => trial.problem(error.message));
  return findings;
};

const together = (all: readonly Findings[]): Findings => {
  const sum = (of: (one: Findings) => number) => all.reduce((total, one) => total + of(one), 0);
  return {
    sent: sum(({ sent }) => sent),
    final: sum(({ final }) => final),
    lost: sum(({ lost }) => lost),
    repeated: { marked: sum(({ repeated }) => repeated.marked), unmarked: sum(({ repeated }) => repeated.unmarked) },
    repeats: all.flatMap(({ repeats = [] }) => repeats),
    recoveryMs: Math.max(...all.map(({ recoveryMs = 0 }) => recoveryMs)),
    problems: all.flatMap(({ problems }) => problems),
    notes: all.flatMap(({ notes }) => notes),
  };
};

const singleSends = ({ name, fault, fixture, prepare }: Victims): Row => ({
  name: `singles-${name}`,
  fault: `kill -9 of ${fault} during ${perSecond.long} single sends a second, 15 times (short: ${perSecond.short} a second, once)`,
  pass: "events, counts, opens and statistics are exact",
  ...(fixture && { fixture }),
  run: async (stage) => {
    const { system, kills } = await prepare(stage);
    // In the long form the notifications of one victim are many enough for one comparison.
    const trials = stage.long ? kills.map((kill) => [kill]) : [kills];
    const findings: Findings[] = [];
    for (const one of trials) findings.push(await killUnderLoad(stage, system, one));
    return together(findings);
  },
});

export const singleSendRows: readonly Row[] = victims.map(singleSends);
