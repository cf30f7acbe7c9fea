import { setTimeout as delay } from "node:timers/promises";
import { percentile, type Row } from "../row.ts";

/** As many as tell a 99th percentile. */
const samples = 200;
const warmUp = 30;
/** Between two sends: the first is done by then, its ledger included. */
const pauseMs = 50;
const pollMs = 5;

type Counted = { readonly pushes: number; readonly lastAt: number };

/** From the POST to the push at the provider, one send to one device at a time. */
export const latencyRow: Row = {
  name: "latency",
  async *measure({ system, sinks, runs }) {
    const { control } = sinks.apns;
    await system.seed("apns", "one-device", 1);
    const one = async (): Promise<number> => {
      await fetch(control, { method: "DELETE" });
      const begin = Date.now();
      await system.send("one-device");
      let counted: Counted;
      do {
        await delay(pollMs);
        counted = (await (await fetch(control)).json()) as Counted;
      } while (counted.pushes === 0);
      await delay(pauseMs);
      return counted.lastAt - begin;
    };
    const median: number[] = [];
    const slow: number[] = [];
    for (let index = 0; index < warmUp; index++) await one();
    for (let run = 0; run < runs; run++) {
      const took: number[] = [];
      for (let index = 0; index < samples; index++) took.push(await one());
      median.push(percentile(took, 50));
      slow.push(percentile(took, 99));
    }
    yield {
      title: "from the POST to the push at APNs, one device, nothing else going on",
      lines: [
        { label: "p50 ms", values: median },
        { label: "p99 ms", values: slow },
      ],
    };
  },
};
