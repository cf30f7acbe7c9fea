import { setTimeout as delay } from "node:timers/promises";
import { costOf, partLines } from "../broadcast.ts";
import type { Row } from "../row.ts";
import { drained, sends } from "../sends.ts";
import { type Counted, countedBy, resetSink } from "../sinks.ts";

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
    const targets = (await system.seed("apns", "each-alone", devices)).map((id) => `device:${id}`);
    const pushed = async (): Promise<Counted> => {
      for (;;) {
        const counted = await countedBy(sinks.apns);
        if (counted.pushes >= burst) return counted;
        await delay(pollMs);
      }
    };
    const rates: number[] = [];
    const costs: Record<string, number>[] = [];
    for (let run = 0; run <= runs; run++) {
      await drained(system);
      await resetSink(sinks.apns);
      const beginAt = Date.now();
      let lastAt = beginAt;
      const cost = await costOf(system, burst, async () => {
        await sends({ gateway, token: project.token, count: burst, targets });
        ({ lastAt } = await pushed());
        await drained(system);
      });
      if (run === 0) continue; // all is compiled by then
      rates.push(burst / ((lastAt - beginAt) / 1000));
      costs.push(cost);
    }
    yield {
      title: "APNs: single sends to one device each, from the first POST to the last push",
      lines: [{ label: "sends/s, pushed", values: rates }, ...partLines(costs, "µs a send")],
    };
  },
};
