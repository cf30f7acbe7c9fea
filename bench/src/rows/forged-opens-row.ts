import { setTimeout as delay } from "node:timers/promises";
import { cpuOf } from "../cost.ts";
import type { System } from "../herald.ts";
import { reportOpens } from "../opens.ts";
import type { Row } from "../row.ts";
import { percentile } from "../table.ts";

/** The pace of other traffic: a read and a send 20 times a second. */
const everyMs = 50;
/** Forged opens a second. The load shares the cores, and faster than both together can be served, it would measure the machine alone. */
const pace = 2_500;
/** As many samples without a flood as tell a 99th percentile. */
const quietSamples = 200;

type Latencies = { readonly read: number[]; readonly send: number[] };

/** How long it took in ms; an error is the row's to throw, at its end. */
const timed = (work: () => Promise<unknown>): Promise<number> => {
  const begin = performance.now();
  const done = work().then(() => performance.now() - begin);
  done.catch(() => {});
  return done;
};

/** Asks at its pace, whatever the answers take, until it is told to end. Throws what was not answered as it should be. */
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

/** What a flood of forged opens does to the rest: the 99th percentile of other routes, with it and without. */
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
