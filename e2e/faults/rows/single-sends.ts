import { setTimeout as delay } from "node:timers/promises";
import { eventually, operateBroker } from "@herald/testing";
import { compareStatistics } from "../../harness/compare-statistics.ts";
import { type System, serviceNames } from "../../harness/system.ts";
import type { Row, Stage } from "../row.ts";
import { randomMoment, startTrial, type Trial } from "../trial.ts";
import { startDatabase } from "./database.ts";

const perSecond = 300;
/** Pause between two kills, before the first and after the last. */
const quietMs = 3_500;

type Killing = { readonly system: System; readonly kill: () => Promise<void> };

/** How long broker or database are down: no supervisor restarts them. */
const unavailableMs = 2_000;

const brokerKilled = async ({ start }: Stage): Promise<Killing> => {
  const system = await start();
  const kill = async () => {
    await system.broker.kill();
    await delay(unavailableMs);
    await system.broker.restart();
  };
  return { system, kill };
};

const databaseKilled = async (stage: Stage): Promise<Killing> => {
  const server = await startDatabase(stage);
  const system = await stage.start({ mongoUrl: server.url });
  const kill = async () => {
    await server.kill();
    await delay(unavailableMs);
    await server.begin();
  };
  return { system, kill };
};

/** Notes the rate of accepted sends, which refusals of the gateway reduce. */
const noteRate = (trial: Trial, ms: number): void => {
  const { promised, answers } = trial.load;
  const refused = [...answers].filter(([status]) => status !== 202).map(([status, count]) => `${count} × ${status}`);
  const rate = Math.round((1_000 * promised.length) / ms);
  trial.note(`${promised.length} single sends, ${rate} a second; refused and tried again: ${refused.join(", ") || 0}`);
};

const singleSends = (victim: string, prepare: (stage: Stage) => Promise<Killing>): Row => ({
  name: `singles-${victim}`,
  fault: `kill -9 of ${victim} in the middle of ${perSecond} single sends a second, 15 times (short: twice)`,
  pass: "every repeat is marked; events, counts, opens and statistics are exact",
  run: async (stage) => {
    const { system, kill } = await prepare(stage);
    const hands = await operateBroker(system.broker);
    stage.defer(() => hands.close());
    const trial = await startTrial(system, { each: 1, script: [], perSecond });
    const begun = performance.now();
    for (let round = 0; round < (stage.long ? 15 : 2); round++) {
      await delay(quietMs);
      await randomMoment(500);
      await kill();
      await Promise.all([trial.recovered(), system.ready()]);
    }
    await delay(quietMs);
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
  },
});

export const singleSendRows: readonly Row[] = [
  ...serviceNames.map((name) =>
    singleSends(name, async ({ shared }) => {
      const system = await shared();
      return { system, kill: () => system.services[name].kill() };
    }),
  ),
  singleSends("nats", brokerKilled),
  singleSends("database", databaseKilled),
];
