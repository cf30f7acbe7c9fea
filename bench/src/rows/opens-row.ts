import { setTimeout as delay } from "node:timers/promises";
import { type Cost, costOf, partLines } from "../cost.ts";
import { reportOpens } from "../opens.ts";
import type { Row } from "../row.ts";

/** Short enough to measure the lag in tenths of a second. */
const pollMs = 100;
/** Opens that are not counted after this time are lost. */
const patienceMs = 120_000;

/** True opens as fast as the gateway accepts them, until the statistics contain the last one. */
export const opensRow: Row = {
  name: "opens",
  about: "--opens true opens, until each is in the statistics",
  async *measure({ system, runs, opens }) {
    const rates: number[] = [];
    const lags: number[] = [];
    const costs: Cost[] = [];
    for (let run = 0; run < runs; run++) {
      const cost = await costOf(system, opens, async () => {
        const { notification, seconds, statuses } = await reportOpens(system, opens, { kind: "true" });
        const taken = statuses["204"] ?? 0;
        if (taken !== opens) throw new Error(`${opens} true opens were answered ${JSON.stringify(statuses)}`);
        const answeredAt = performance.now();
        let counted = await system.opened(notification);
        while (counted < opens && performance.now() - answeredAt < patienceMs) {
          await delay(pollMs);
          counted = await system.opened(notification);
        }
        const lag = (performance.now() - answeredAt) / 1000;
        if (counted !== opens) throw new Error(`${opens} opens were taken and ${counted} counted: each must be, once`);
        rates.push(opens / seconds);
        lags.push(lag);
      });
      costs.push(cost);
    }
    yield {
      title: `${opens} true opens, each counted once`,
      lines: [
        { label: "opens/s", values: rates },
        { label: "s from the last answer to the exact count", values: lags, digits: 1 },
        ...partLines(costs, "µs an open"),
      ],
    };
  },
};
