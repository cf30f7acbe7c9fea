import { setTimeout as delay } from "node:timers/promises";
import { eventually, request } from "@herald/testing";
import type { System } from "../../harness/system.ts";
import type { Row } from "../row.ts";
import { startTrial, type Trial } from "../trial.ts";
import { expectUnavailable, expectUnavailableRoutes } from "../unavailable.ts";

/** While the bus is unavailable Herald accepts no sends, and answers with Retry-After. */
export async function expectRefusals(system: System, trial: Trial, broadcast: string): Promise<void> {
  const { project, load, problem } = trial;
  await eventually(
    async () => {
      const { status, text } = await request(system.gateway, "GET /readyz");
      // A frozen broker may store a send after its 503, if the gateway wrote it before it noticed the loss.
      if (status !== 503 || !text.includes("NATS is unavailable"))
        throw new Error(`the gateway does not say that NATS is unavailable (${status}): ${text}`);
    },
    { timeoutMs: 20_000 },
  ).catch((error: Error) => problem(error.message));
  const before = load.promised.length;
  const notification = { title: "Into the void", targets: ["topic:empty"] };
  const answers = await Promise.all(
    Array.from({ length: 20 }, () => project.call("POST /notifications", { body: { notification } })),
  );
  for (const answer of answers) expectUnavailable(trial, "POST /notifications", answer);
  await expectUnavailableRoutes(trial, ["GET /devices", `GET /notifications/${broadcast}`]);
  const live = await request(system.gateway, "GET /livez");
  if (live.status !== 200) problem(`the gateway is said to be dead (${live.status}) while the bus is unavailable`);
  if (load.promised.length > before) problem("a send was answered 202 while the bus was unavailable");
}

const rows = {
  restart: { fault: "NATS restarted", outage: undefined },
  kill: { fault: "NATS killed, unavailable for 20 s (short: 3 s)", outage: { long: 20_000, short: 3_000 } },
  freeze: { fault: "NATS frozen by SIGSTOP for 60 s (short: 4 s)", outage: { long: 60_000, short: 4_000 } },
} as const;

const brokerRow = (how: keyof typeof rows): Row => ({
  name: `nats-${how}`,
  fault: rows[how].fault,
  pass: "503 with Retry-After while it is unavailable; consumers resume by themselves; no repeat",
  run: async ({ long, shared }) => {
    const system = await shared();
    const trial = await startTrial(system);
    const { outage } = rows[how];
    for (let round = 0; round < (long ? 3 : 1); round++) {
      const broadcast = await trial.broadcastUnderWay();
      if (how === "freeze") await system.broker.freeze();
      if (how === "kill") await system.broker.kill();
      if (outage) {
        await expectRefusals(system, trial, broadcast);
        await delay(long ? outage.long : outage.short);
      }
      if (how === "freeze") await system.broker.thaw();
      else await system.broker.restart();
      await trial.recovered();
      await system.ready();
    }
    if (outage && !trial.load.answers.has(503)) trial.problem("the load has met no 503");
    const findings = await trial.finish({ timeoutMs: 90_000 });
    const { marked } = findings.repeated;
    if (marked > 0) trial.problem(`${marked} came twice`);
    return findings;
  },
});

export const brokerRows: readonly Row[] = (["restart", "kill", "freeze"] as const).map(brokerRow);
