import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { eventually } from "@herald/testing";
import { changeable } from "../changeable.ts";
import type { Row } from "../row.ts";
import { crowd, seconds, startTrial } from "../trial.ts";

const skewedClock = pathToFileURL(join(import.meta.dirname, "../skewed-clock.ts")).href;
/** Providers refuse a credential that was signed more than about a minute ahead of their own time. */
const offSeconds = 50;
/** A deferred attempt waits at most 10 s, and is claimed a few seconds later. */
const retriedWithinMs = 60_000;

const clockRow = (how: "ahead" | "behind"): Row => ({
  name: `clock-${how}`,
  fault: `the clock of dispatch ${offSeconds} s ${how}, those of registry and analytics ${offSeconds} s the other way`,
  pass: "retries and expiry at the right times; events and opens as usual",
  fixture: changeable,
  run: async ({ use }) => {
    const off = (how === "ahead" ? 1 : -1) * offSeconds * 1_000;
    const begun = Date.now();
    const { withVariables } = await use(changeable);
    const system = await withVariables({
      HERALD_LOG_LEVEL: "debug", // debug lines contain the time
      NODE_OPTIONS: `--import=${skewedClock}`,
      HERALD_FAULTS_CLOCKS: `dispatch=${off},registry=${-off},analytics=${-off}`,
    });
    await eventually(() => {
      const said = system.logs.lines.flatMap(({ part, time }) => (part === "dispatch" && time ? [String(time)] : []));
      const meant = said.map((time) => Date.parse(time) - off);
      if (!meant.some((time) => time >= begun && time <= Date.now()))
        throw new Error(`the clock of dispatch is not off: it says ${said.at(-1)}`);
    });

    // One delivery in three waits for a second attempt, whose time depends on the clock.
    const trial = await startTrial(system, {
      script: [{ tokenPrefix: crowd, status: 500, share: 0.3, times: 60 }],
    });
    await trial.broadcastUnderWay();
    const from = performance.now();
    const timed = await trial.broadcast();
    await trial.project.final(timed, retriedWithinMs).catch((error: Error) => trial.problem(error.message));
    trial.note(`retries were done after ${seconds(performance.now() - from)}`);
    await trial.recovered();
    const refused = (await system.simulators.pushes()).filter(
      ({ status }) => status !== null && status >= 400 && status < 500,
    );
    for (const { provider, status, reason, problem } of refused.slice(0, 3))
      trial.problem(`${provider} refused with ${status} ${reason ?? ""}: ${problem ?? ""}`);
    return trial.finish({ timeoutMs: 120_000 });
  },
});

export const clockRows: readonly Row[] = (["ahead", "behind"] as const).map(clockRow);
