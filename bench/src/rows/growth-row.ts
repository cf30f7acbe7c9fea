import { type Broadcast, broadcast, linesOfEach } from "../broadcast.ts";
import type { Row } from "../row.ts";
import type { Table } from "../table.ts";

const tableOf = (devices: number, broadcasts: readonly Broadcast[]): Table => ({
  title: `Sends to many devices: APNs, a topic of ${devices}, stored in bulk`,
  lines: [
    { label: "pushes/s", values: broadcasts.map((one) => one.pushesPerSecond) },
    { label: "CPU of Herald, µs", values: broadcasts.map((one) => one.ownCpu) },
    ...linesOfEach(broadcasts),
  ],
});

/** Whether a push to the largest audience costs more than a push to one of the usual sizes. The largest gets one send. */
export const growthRow: Row = {
  name: "broadcast-growth",
  about: "one send to a topic of --largest devices, and one to each of --devices",
  async *measure({ system, sinks, runs, sizes, largest }) {
    const sink = sinks.apns;
    for (const devices of [...sizes, largest]) {
      const topic = `growth-of-${devices}`;
      await system.seed("apns", topic, devices);
      const broadcasts: Broadcast[] = [];
      for (let run = 0; run < (devices === largest ? 1 : runs); run++)
        broadcasts.push(await broadcast(system, sink, topic, devices));
      yield tableOf(devices, broadcasts);
    }
  },
};
