import { type Broadcast, broadcast, linesOfEach } from "../broadcast.ts";
import type { Row } from "../row.ts";
import { delaySink } from "../sinks.ts";

const latencyMs = 50;

/** One send to a topic with a slow provider, where the number of pushes in flight limits the speed. */
export const slowProviderRow: Row = {
  name: "broadcast-50ms",
  about: `one send to a topic of the last of --devices, to a provider that takes ${latencyMs} ms`,
  async *measure({ system, sinks, runs, sizes }) {
    const sink = sinks.apns;
    const devices = sizes.at(-1) ?? 0;
    const topic = `slow-of-${devices}`;
    await system.seed("apns", topic, devices);
    const broadcasts: Broadcast[] = [];
    await delaySink(sink, latencyMs);
    try {
      for (let run = 0; run < runs; run++) broadcasts.push(await broadcast(system, sink, topic, devices));
    } finally {
      await delaySink(sink, 0);
    }
    yield {
      title: `Sends to many devices: APNs takes ${latencyMs} ms, a topic of ${devices}`,
      lines: [
        { label: "pushes/s", values: broadcasts.map((one) => one.pushesPerSecond) },
        { label: "CPU of Herald, µs", values: broadcasts.map((one) => one.ownCpu) },
        ...linesOfEach(broadcasts),
      ],
    };
  },
};
