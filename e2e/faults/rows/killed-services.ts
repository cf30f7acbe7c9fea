import type { ServiceName } from "../../harness/system.ts";
import type { Row } from "../row.ts";
import { slowness } from "../slowness.ts";
import { randomMoment, seconds, startTrial } from "../trial.ts";

/** A process, its supervisor and what they need take this long at most. */
const backWithinMs = 10_000;
/** The project whose lane the dead process filled: its new sends wait behind those, which come back after the ack wait of 6 s. */
const goesOnWithinMs = 15_000;

const killed = (service: ServiceName): Row => ({
  name: `kill-${service}`,
  fault: `kill -9 of ${service}, 20 times at random moments (short: 4)`,
  pass: "only what was in flight is repeated; back in 10 s (stretched on a slow machine)",
  run: async ({ long, shared }) => {
    const system = await shared();
    const trial = await startTrial(system);
    let [longest, slowest] = [0, 1];
    for (let kill = 0; kill < (long ? 20 : 4); kill++) {
      const id = await trial.broadcast();
      await randomMoment(2_000);
      if (service === "dispatch") await trial.expectNoRepeatOf(id);
      const [, slow] = await Promise.all([system.services[service].kill(), slowness()]);
      // The project itself too, whose lane may be full of what the dead process held.
      const [back, goesOn] = await Promise.all([trial.recovered(), trial.goesOn(), system.services[service].ready()]);
      slowest = Math.max(slowest, slow);
      longest = Math.max(longest, goesOn);
      if (back > backWithinMs * slow) trial.problem(`was back after ${seconds(back)} only`);
      if (goesOn > goesOnWithinMs * slow) trial.problem(`the project itself went on after ${seconds(goesOn)} only`);
    }
    trial.note(
      `the project itself went on after ${seconds(longest)} at most; limits stretched up to ${slowest.toFixed(1)} times`,
    );
    return trial.finish();
  },
});

export const killedServices: readonly Row[] = (["dispatch", "registry", "gateway", "analytics"] as const).map(killed);
