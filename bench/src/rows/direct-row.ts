import { setTimeout as delay } from "node:timers/promises";
import { cpuOf } from "../broadcast.ts";
import type { Row } from "../row.ts";
import { drained, sends } from "../sends.ts";
import { countedBy, resetSink } from "../sinks.ts";

/** Each gets one of them after the other. */
const devices = 1_000;
/** Some seconds of the highest rate, and little of what may wait in a project's queue. */
const burst = 3_000;
const pollMs = 50;

/** Single sends, each to one device: from the first POST to the last push, its ledger and its end. */
export const directRow: Row = {
  name: "direct",
  async *measure({ system, sinks, runs }) {
    const { gateway, project } = system;
    const ids = await system.seed("apns", "each-alone", devices);
    const targets = ids.map((id) => `device:${id}`);
    const rates: number[] = [];
    const cpus: Record<string, number>[] = [];
    for (let run = 0; run <= runs; run++) {
      await drained(system);
      await resetSink(sinks.apns);
      const before = cpuOf(system);
      const beginAt = Date.now();
      await sends({ gateway, token: project.token, count: burst, targets });
      let counted = await countedBy(sinks.apns);
      while (counted.pushes < burst) {
        await delay(pollMs);
        counted = await countedBy(sinks.apns);
      }
      await drained(system);
      if (run === 0) continue; // all are compiled by then
      rates.push(burst / ((counted.lastAt - beginAt) / 1000));
      const after = cpuOf(system);
      cpus.push(
        Object.fromEntries(
          Object.entries(after).map(([name, seconds]) => [name, ((seconds - (before[name] ?? 0)) * 1e6) / burst]),
        ),
      );
    }
    yield {
      title: "APNs: single sends to one device each, from the first POST to the last push",
      lines: [
        { label: "sends/s, pushed", values: rates },
        ...Object.keys(cpus[0] ?? {}).map((name) => ({
          label: `  ${name.padEnd(12)} µs a send`,
          values: cpus.map((cpu) => cpu[name] ?? 0),
        })),
      ],
    };
  },
};
