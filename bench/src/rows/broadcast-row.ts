import { once } from "node:events";
import { type Broadcast, broadcast } from "../broadcast.ts";
import { firstLine, start } from "../processes.ts";
import type { Row, Table } from "../row.ts";

type Floor = { readonly pushes: number; readonly seconds: number; readonly cpuMicros: number };

/** `node:http2` alone, in the same run, against the same sink. */
const measureFloor = async (sink: { url: string; ca: string }, pushes: number): Promise<Floor> => {
  const child = start("bench/src/bare-http2.ts", [sink.url, String(pushes)], { BENCH_CA: sink.ca });
  const floor = await firstLine<Floor>(child);
  if (child.exitCode === null) await once(child, "exit");
  return floor;
};

const tableOf = (devices: number, broadcasts: readonly Broadcast[], floors: readonly Floor[]): Table => {
  const floorRates = floors.map(({ pushes, seconds }) => pushes / seconds);
  const ofEach = (suffix: string, pick: (one: Broadcast) => Readonly<Record<string, number>>) =>
    Object.keys(broadcasts[0] === undefined ? {} : pick(broadcasts[0])).map((name) => ({
      label: `  ${name.padEnd(12)} ${suffix}`,
      values: broadcasts.map((one) => pick(one)[name] ?? 0),
    }));
  return {
    title: `one send to a topic of ${devices} devices, from the POST to the last push`,
    lines: [
      { label: "pushes/s", values: broadcasts.map((one) => one.pushesPerSecond) },
      { label: "node:http2 alone, pushes/s", values: floorRates },
      {
        label: "ratio",
        values: broadcasts.map((one, index) => one.pushesPerSecond / (floorRates[index] ?? 1)),
        digits: 2,
      },
      { label: "CPU of Herald, µs a push", values: broadcasts.map((one) => one.ownCpu) },
      { label: "node:http2 alone, µs a push", values: floors.map(({ pushes, cpuMicros }) => cpuMicros / pushes) },
      ...ofEach("µs a push", (one) => one.cpu),
      ...ofEach("peak MB", (one) => one.peakMegabytes),
    ],
  };
};

const warmUp = 5_000;

/** One send to a topic, beside the floor. */
export const broadcastRow: Row = {
  name: "broadcast",
  async *measure({ system, sink, runs, sizes }) {
    await system.seed("warm-up", warmUp);
    await broadcast(system, sink.control, "warm-up", warmUp);
    for (const devices of sizes) {
      const topic = `of-${devices}`;
      await system.seed(topic, devices);
      const broadcasts: Broadcast[] = [];
      const floors: Floor[] = [];
      for (let run = 0; run < runs; run++) {
        floors.push(await measureFloor(sink, devices));
        broadcasts.push(await broadcast(system, sink.control, topic, devices));
      }
      yield tableOf(devices, broadcasts, floors);
    }
  },
};
