import { cpuOf } from "../cost.ts";
import { besideFloor } from "../floors.ts";
import type { Row } from "../row.ts";
import { sends, settled, without } from "../sends.ts";
import { percentile } from "../table.ts";
import { seedTargets, warmUp } from "./direct-row.ts";

/** About a second of work at the highest rate, and far below the limit of a project's queue. */
const burst = 2_000;
/** Requests a second, for three seconds, when measuring the 99th percentile. */
const pace = 500;
const paced = 1_500;
/** Paused so that the gateway runs alone, like the floor. */
const others = ["registry", "dispatch", "analytics"];

/** Single sends accepted by the gateway, beside the minimum cost of accepting one. */
export const sendsRow: Row = {
  name: "sends",
  about: "single sends accepted by the gateway: with all else at rest, and while they are sent",
  async *measure({ system, runs }) {
    const targets = await seedTargets(system);
    const herald = { gateway: system.gateway, token: system.project.token, targets };
    const slow = { floor: [] as number[], herald: [] as number[] };
    const of = { floor: [] as number[], alone: [] as number[], working: [] as number[] };
    const cpu = { floor: [] as number[], gateway: [] as number[] };
    const alone = (count: number) => without(system, others, () => sends({ ...herald, count }));
    await besideFloor(undefined, async (floor) => {
      const bare = { gateway: floor.gateway, token: "", targets };
      const cpuNow = () => ({ floor: cpuOf(floor).floor ?? 0, gateway: cpuOf(system).gateway ?? 0 });
      const p99 = async (load: typeof herald) =>
        percentile((await sends({ ...load, count: paced, pace })).latencies, 99);
      await sends({ ...bare, count: warmUp });
      await settled(system, warmUp, () => alone(warmUp));
      for (let run = 0; run < runs; run++) {
        slow.floor.push(await p99(bare));
        slow.herald.push(await settled(system, paced, () => p99(herald)));
        const before = cpuNow();
        of.floor.push(burst / (await sends({ ...bare, count: burst })).seconds);
        await settled(system, burst, async () => {
          of.alone.push(burst / (await alone(burst)).seconds);
          const after = cpuNow();
          cpu.floor.push(((after.floor - before.floor) * 1e6) / burst);
          cpu.gateway.push(((after.gateway - before.gateway) * 1e6) / burst);
        });
        of.working.push(burst / (await settled(system, burst, () => sends({ ...herald, count: burst }))).seconds);
      }
    });
    yield {
      title: "single sends accepted",
      lines: [
        { label: "accepted/s, all else at rest", values: of.alone },
        { label: "floor, accepted/s", values: of.floor },
        { label: "ratio to the floor", values: of.alone.map((rate, run) => rate / (of.floor[run] ?? 1)), digits: 2 },
        { label: "accepted/s while they are sent", values: of.working },
        { label: "CPU of the gateway, µs a send", values: cpu.gateway },
        { label: "CPU of the floor and its broker, µs a send", values: cpu.floor },
        {
          label: `p99 ms at ${pace}/s while they are sent`,
          values: slow.herald,
          digits: 1,
          figure: "accepted-p99",
        },
        { label: `floor, p99 ms at ${pace}/s`, values: slow.floor, digits: 1 },
      ],
    };
  },
};
