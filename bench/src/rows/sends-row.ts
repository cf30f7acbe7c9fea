import { cpuOf } from "../broadcast.ts";
import type { System } from "../herald.ts";
import { cpuSeconds, end, firstLine, start } from "../processes.ts";
import { percentile, type Row } from "../row.ts";
import { drained, sends } from "../sends.ts";

/** A second of the highest rate, and little of what may wait in a project's queue. */
const burst = 2_000;
/** Of the pace at which the slowest hundredth is looked at, for three seconds. */
const pace = 500;
const paced = 1_500;
/** Both sides are compiled by then. */
const warmUp = 1_000;
/** Runs while the services behind the gateway stand still: as the floor runs, which has none. */
const alone = async <T>({ processes }: System, work: () => Promise<T>): Promise<T> => {
  const others = ["registry", "dispatch", "analytics"].flatMap((name) => processes[name] ?? []);
  for (const pid of others) process.kill(pid, "SIGSTOP");
  try {
    return await work();
  } finally {
    for (const pid of others) process.kill(pid, "SIGCONT");
  }
};

/** Single sends, accepted by the gateway, beside the least that accepting one costs. */
export const sendsRow: Row = {
  name: "sends",
  async *measure({ system, runs }) {
    const floor = start("bench/src/send-floor.ts");
    try {
      const { url, pid } = await firstLine<{ url: string; pid: number }>(floor);
      const { gateway } = system;
      const { token } = system.project;
      const gatewayCpu = () => cpuOf(system).gateway ?? 0;
      await sends({ gateway: url, token: "", count: warmUp });
      await alone(system, () => sends({ gateway, token, count: warmUp }));
      const slow: number[] = [];
      const of = { floor: [] as number[], alone: [] as number[], working: [] as number[] };
      const cpu = { floor: [] as number[], gateway: [] as number[] };
      for (let run = 0; run < runs; run++) {
        await drained(system);
        slow.push(percentile((await sends({ gateway, token, count: paced, pace })).latencies, 99));
        await drained(system);
        const before = { floor: cpuSeconds(pid), gateway: gatewayCpu() };
        of.floor.push(burst / (await sends({ gateway: url, token: "", count: burst })).seconds);
        of.alone.push(burst / (await alone(system, () => sends({ gateway, token, count: burst }))).seconds);
        cpu.floor.push(((cpuSeconds(pid) - before.floor) * 1e6) / burst);
        cpu.gateway.push(((gatewayCpu() - before.gateway) * 1e6) / burst);
        await drained(system);
        of.working.push(burst / (await sends({ gateway, token, count: burst })).seconds);
      }
      await drained(system);
      yield {
        title: "single sends accepted, beside bare express, zod and one awaited publish",
        lines: [
          { label: "accepted/s, all else at rest", values: of.alone },
          { label: "floor, accepted/s", values: of.floor },
          { label: "ratio", values: of.alone.map((rate, index) => rate / (of.floor[index] ?? 1)), digits: 2 },
          { label: "accepted/s while they are sent", values: of.working },
          { label: "gateway µs a send", values: cpu.gateway },
          { label: "floor µs a send", values: cpu.floor },
          { label: `p99 ms at ${pace}/s while they are sent`, values: slow, digits: 1 },
        ],
      };
    } finally {
      await end(floor);
    }
  },
};
