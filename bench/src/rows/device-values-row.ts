import { type Broadcast, broadcast, largeSend, linesOfEach } from "../broadcast.ts";
import type { Row } from "../row.ts";

const warmUp = 5_000;

/** A send to a topic that shows each device a value of its own, beside one that shows all the same. */
export const deviceValuesRow: Row = {
  name: "device-values",
  about: "a send to a topic that shows a value of each device, beside one that does not: the last of --devices",
  async *measure({ system, sinks, runs, sizes }) {
    const sink = sinks.apns;
    const devices = sizes.at(-1) ?? 0;
    const seed = (topic: string, count: number) =>
      system.seed("apns", topic, count, (at) => ({ metadata: { plan: at % 3 === 0 ? "pro" : "free", points: at } }));
    const send = (of: typeof system, topic: string, count: number): Promise<Broadcast> =>
      largeSend(of, sink, count, async () => {
        const { id } = await of.herald.notifications.send({
          ...{ title: "Hello", body: "{{ device.metadata.plan }}, {{ device.metadata.points | number }} points" },
          ...{ variables: {}, targets: [`topic:${topic}`], ttl: 3_600 },
        });
        return id;
      });
    const topic = `device-values-of-${devices}`;
    await seed("device-values-warm-up", warmUp);
    await seed(topic, devices);
    // The profile must not contain the compilation of code.
    const unprofiled = { ...system, profiler: undefined };
    await send(unprofiled, "device-values-warm-up", warmUp);
    await broadcast(unprofiled, sink, "device-values-warm-up", warmUp);
    const plain: Broadcast[] = [];
    const shown: Broadcast[] = [];
    for (let run = 0; run < runs; run++) {
      plain.push(await broadcast(unprofiled, sink, topic, devices));
      shown.push(await send(system, topic, devices));
    }
    yield {
      title: `Large sends that do more, beside plain ones: values of each of ${devices} in the text`,
      lines: [
        { label: "pushes/s", values: shown.map((one) => one.pushesPerSecond) },
        { label: "plain/s", values: plain.map((one) => one.pushesPerSecond) },
        {
          label: "ratio to plain",
          values: shown.map((one, run) => one.pushesPerSecond / (plain[run]?.pushesPerSecond ?? 1)),
          digits: 2,
          figure: "device-values",
        },
        { label: "CPU of Herald, µs", values: shown.map((one) => one.ownCpu) },
        { label: "CPU of plain, µs", values: plain.map((one) => one.ownCpu) },
        ...linesOfEach(shown),
      ],
    };
  },
};
