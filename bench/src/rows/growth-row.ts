import { type Broadcast, broadcast, linesOfEach } from "../broadcast.ts";
import type { Row } from "../row.ts";
import { median, type Table } from "../table.ts";

const tableOf = (devices: number, broadcasts: readonly Broadcast[]): Table => ({
  title: `Sends to many devices: APNs, a topic of ${devices}, stored in bulk`,
  lines: [
    { label: "pushes/s", values: broadcasts.map((one) => one.pushesPerSecond) },
    { label: "CPU of Herald, µs", values: broadcasts.map((one) => one.ownCpu) },
    ...linesOfEach(broadcasts),
  ],
});

const medianOf = (broadcasts: readonly Broadcast[], pick: (one: Broadcast) => number): number =>
  median(broadcasts.map(pick));

/** Whether a push to the largest audience costs more than a push to one of the usual sizes. The largest gets one send. */
export const growthRow: Row = {
  name: "broadcast-growth",
  about: "one send to a topic of --largest devices, in proportion to one to each of --devices",
  async *measure({ system, sinks, runs, sizes, largest }) {
    const sink = sinks.apns;
    const measured: { devices: number; broadcasts: Broadcast[] }[] = [];
    for (const devices of [...sizes, largest]) {
      const topic = `growth-of-${devices}`;
      await system.seed("apns", topic, devices);
      const broadcasts: Broadcast[] = [];
      for (let run = 0; run < (devices === largest ? 1 : runs); run++)
        broadcasts.push(await broadcast(system, sink, topic, devices));
      yield tableOf(devices, broadcasts);
      measured.push({ devices, broadcasts });
    }
    const large = measured.pop()?.broadcasts ?? [];
    yield {
      title: `a push to ${largest} devices, in proportion to one to fewer`,
      lines: measured.flatMap(({ devices, broadcasts }) => [
        {
          label: `time, to ${devices}`,
          values: [medianOf(broadcasts, (one) => one.pushesPerSecond) / medianOf(large, (one) => one.pushesPerSecond)],
          digits: 2,
        },
        {
          label: `CPU of Herald, to ${devices}`,
          values: [medianOf(large, (one) => one.ownCpu) / medianOf(broadcasts, (one) => one.ownCpu)],
          digits: 2,
        },
      ]),
    };
  },
};
