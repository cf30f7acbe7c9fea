import type { ServiceName } from "../../harness/system.ts";
import type { Row } from "../row.ts";
import { slowness } from "../slowness.ts";
import { platforms, randomMoment, seconds, startTrial } from "../trial.ts";

/** The longest time until a killed process works again, with its restart by the supervisor. */
const backWithinMs = 10_000;
/** For the project whose lane the dead process filled: new sends wait for its messages, which NATS redelivers after the ack wait of 6 s. */
const goesOnWithinMs = 15_000;

/** Dispatch and registry first: their messages are redelivered after the ack wait, which passes during the other kills. */
const names: readonly ServiceName[] = ["dispatch", "registry", "gateway", "analytics"];

const killed = (service: ServiceName): Row => ({
  name: `kill-${service}`,
  fault: `kill -9 of ${service}, 20 times at random moments (short: 2)`,
  pass: "only what dispatch had in flight is repeated; back in 10 s",
  run: async ({ long, shared }) => {
    const system = await shared();
    const trial = await startTrial(system);
    let [longest, slowest] = [0, 1];
    const kills = long ? 20 : 2;
    for (let kill = 0; kill < kills; kill++) {
      const id = await trial.broadcast();
      // The first kill comes at once, while dispatch or registry holds the broadcast.
      if (kill > 0) await randomMoment(2_000);
      if (service === "dispatch") await trial.expectNoRepeatOf(id);
      const [, slow] = await Promise.all([system.services[service].kill(), slowness()]);
      // Also check the project itself, whose lane may be full of messages of the dead process.
      const [back, goesOn] = await Promise.all([trial.recovered(), trial.goesOn(), system.services[service].ready()]);
      slowest = Math.max(slowest, slow);
      longest = Math.max(longest, goesOn);
      if (back > backWithinMs * slow) trial.problem(`was back after ${seconds(back)} only`);
      if (goesOn > goesOnWithinMs * slow) trial.problem(`the project itself went on after ${seconds(goesOn)} only`);
    }
    trial.note(
      `the project itself went on after ${seconds(longest)} at most; limits stretched up to ${slowest.toFixed(1)} times`,
    );
    const findings = await trial.finish();
    const { marked } = findings.repeated;
    const max = service === "dispatch" ? kills * trial.each * platforms.length : 0;
    if (marked > max) trial.problem(`${marked} came twice, where ${max} may`);
    return findings;
  },
});

const together: Row = {
  name: "kill-all",
  fault: "kill -9 of all four services at once during a broadcast, 10 times (short: once)",
  pass: "only what was in flight is repeated",
  run: async ({ long, shared }) => {
    const system = await shared();
    const trial = await startTrial(system);
    const rounds = long ? 10 : 1;
    for (let round = 0; round < rounds; round++) {
      await trial.broadcastUnderWay();
      await Promise.all(names.map((name) => system.services[name].kill()));
      await Promise.all([trial.recovered(), system.ready()]);
    }
    const findings = await trial.finish();
    const [{ marked }, max] = [findings.repeated, rounds * trial.each * platforms.length];
    if (marked > max) trial.problem(`${marked} came twice, where ${max} may`);
    return findings;
  },
};

export const killedServices: readonly Row[] = [...names.map(killed), together];
