import { NotificationPausedV1 } from "@herald/contracts";
import { eventually, expectStatus } from "@herald/testing";
import { startReplicas } from "../../harness/beside.ts";
import { eventsOf } from "../../harness/compare-events.ts";
import { sendSurely } from "../../harness/load.ts";
import type { Project } from "../../harness/project.ts";
import { seed } from "../../harness/seed.ts";
import type { System } from "../../harness/system.ts";
import { pushesAndRepeats } from "../repeats.ts";
import type { Findings, Fixture, Row } from "../row.ts";
import { crowd, randomMoment } from "../trial.ts";
import { bootstrap, clocked, hurry, loseData } from "./broker-lost.ts";

const failing = "bad0";
const targets = ["topic:everyone"];
const finalWithinMs = 180_000;

const replicas: Fixture<System> = {
  open: async ({ start, defer }) => {
    const system = await start();
    await startReplicas(system, defer);
    return system;
  },
};

/** What a rollout reports at its end. */
const findingsOf = async (system: System, project: Project, id: string, devices: number): Promise<Findings> => {
  const { counts, rollout } = await project.final(id, finalWithinMs);
  const { lost, repeated } = await pushesAndRepeats(system, project, id, devices);
  const problems: string[] = [];
  if (rollout?.released !== devices || counts.devices !== devices)
    problems.push(`${rollout?.released} were released and ${counts.devices} counted of ${devices} devices`);
  const final = counts.devices - counts.pending;
  return { sent: devices, final, lost, repeated, recoveryMs: undefined, problems, notes: [] };
};

const released = async (project: Project, id: string): Promise<number> =>
  (await project.notification(id)).rollout?.released ?? 0;

const kills: Row = {
  name: "rollout",
  fault:
    "kill -9 of dispatch or registry, with two replicas, 20 times (short: 8) while one send is released at a speed and another stops by itself",
  pass: "each device once or marked; all are released; one stop, with one event",
  fixture: replicas,
  run: async ({ long, use }) => {
    const system = await use(replicas);
    const rounds = long ? 20 : 8;
    const [paced, failed] = [await system.project("Paced"), await system.project("Failing")];
    const devices = rounds * 80;
    await seed(system, paced, devices, { prefix: crowd, topics: ["everyone"] });
    await seed(system, failed, 1_000, { prefix: crowd, topics: ["everyone"] });
    await seed(system, failed, 500, { prefix: failing, topics: ["everyone"] });
    await system.simulators.script([{ tokenPrefix: failing, status: 413 }]);

    const id = await sendSurely(paced, { title: "Paced", targets, rollout: { per_minute: 480 } });
    const stopping = await sendSurely(failed, { title: "Failing", targets, rollout: { stop_if: { failed: 0.05 } } });
    for (let round = 0; round < rounds; round++) {
      const victim = system.services[round % 3 === 2 ? "registry" : "dispatch"];
      await randomMoment(8_000);
      await victim.kill();
      await victim.ready();
    }
    const findings = await findingsOf(system, paced, id, devices);
    await eventually(async () => {
      const { status } = await failed.notification(stopping);
      if (status !== "paused") throw new Error(`with a third of its devices failing it is ${status}`);
    });
    const stops = await eventsOf(system, failed, NotificationPausedV1);
    const reached = await released(failed, stopping);
    const problems = [
      ...findings.problems,
      ...(stops.length === 1 ? [] : [`it stopped once, with ${stops.length} events`]),
      ...(reached < 1_500 ? [] : ["it stopped when all devices were released"]),
    ];
    const notes = [`stopped with ${reached} of 1500 devices released`];
    expectStatus(await failed.call(`DELETE /notifications/${stopping}`), 200, 202);
    return { ...findings, problems, notes };
  },
};

const lost: Row = {
  name: "rollout-nats-lost",
  fault: "NATS loses all data in the middle of a rollout, dispatch and registry die, bootstrap creates it again",
  pass: "each device once or marked; all are released",
  fixture: clocked,
  run: async ({ use }) => {
    const { system, clock } = await use(clocked);
    const project = await system.project("Rollout without its broker");
    const devices = 400;
    await seed(system, project, devices, { prefix: crowd, topics: ["everyone"] });
    const id = await sendSurely(project, { title: "Paced", targets, rollout: { per_minute: 600 } });
    await eventually(
      async () => {
        if ((await released(project, id)) < devices / 2) throw new Error("half of the devices are not released");
      },
      { timeoutMs: 60_000 },
    );
    await loseData(system);
    await bootstrap(system);
    await system.ready();
    const stop = hurry(clock);
    return findingsOf(system, project, id, devices).finally(stop);
  },
};

export const rolloutRows: readonly Row[] = [kills, lost];
