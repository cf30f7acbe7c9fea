import { setTimeout as delay } from "node:timers/promises";
import { cpuOf } from "../cost.ts";
import type { System } from "../herald.ts";
import { reportOpens } from "../opens.ts";
import type { Row } from "../row.ts";
import { percentile } from "../table.ts";

/** The pace of other traffic: a read and a send 20 times a second. */
const everyMs = 50;
/** Forged opens a second. The load shares the cores with Herald: a faster pace would only measure the machine's limit. */
const pace = 2_500;
/** Samples without a flood: enough for a 99th percentile. */
const quietSamples = 200;

type Latencies = { readonly read: number[]; readonly send: number[] };

/** The duration of `work` in ms. Errors stay in the promise, and the row throws them at its end. */
const timed = (work: () => Promise<unknown>): Promise<number> => {
  const begin = performance.now();
  const done = work().then(() => performance.now() - begin);
  done.catch(() => {});
  return done;
};

/** Reads and sends at a steady pace as long as `more` returns true. Throws if a request failed. */
const probe = async (system: System, more: (asked: number) => boolean): Promise<Latencies> => {
  const reads: Promise<number>[] = [];
  const sends: Promise<number>[] = [];
  for (let asked = 0; more(asked); asked++) {
    reads.push(timed(() => system.get("/devices?per_page=1")));
    sends.push(timed(() => system.send("nobody")));
    await delay(everyMs);
  }
  return { read: await Promise.all(reads), send: await Promise.all(sends) };
};

const p99 = (values: readonly number[]): number => percentile(values, 99);

/** The effect of a flood of forged opens: the 99th percentile of other routes, with and without the flood. */
export const forgedOpensRow: Row = {
  name: "forged-opens",
  about: "other routes beside --opens forged opens from many addresses",
  async *measure({ system, runs, opens }) {
    const quiet: Latencies[] = [];
    const flooded: Latencies[] = [];
    const rates: number[] = [];
    const costs: number[] = [];
    for (let run = 0; run < runs; run++) {
      quiet.push(await probe(system, (asked) => asked < quietSamples));
      let ended = false;
      const before = cpuOf(system);
      const flood = reportOpens(system, opens, { kind: "forged", pace }).finally(() => {
        ended = true;
      });
      flooded.push(await probe(system, () => !ended));
      const { seconds, statuses } = await flood;
      if (statuses["403"] !== opens) throw new Error(`${opens} forged opens were answered ${JSON.stringify(statuses)}`);
      rates.push(opens / seconds);
      costs.push(((cpuOf(system).gateway ?? 0) - (before.gateway ?? 0)) * (1e6 / opens));
    }
    yield {
      title: `other routes beside ${opens} forged opens, ${pace} a second from many addresses`,
      lines: [
        { label: "forged opens refused/s", values: rates },
        { label: "gateway µs a refusal, with the other routes'", values: costs },
        { label: "GET /devices, p99 ms without", values: quiet.map(({ read }) => p99(read)), digits: 1 },
        { label: "GET /devices, p99 ms with", values: flooded.map(({ read }) => p99(read)), digits: 1 },
        { label: "POST /notifications, p99 ms without", values: quiet.map(({ send }) => p99(send)), digits: 1 },
        { label: "POST /notifications, p99 ms with", values: flooded.map(({ send }) => p99(send)), digits: 1 },
      ],
    };
  },
};
