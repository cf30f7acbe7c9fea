import { type Cost, costOf, partLines, services, sumOf } from "./cost.ts";
import type { System } from "./herald.ts";
import { forgetPeak, peakMegabytes } from "./processes.ts";
import { countedBy, pushed, resetSink, type Sink } from "./sinks.ts";
import type { Line } from "./table.ts";
import { until } from "./until.ts";

/** The cost of one send to many devices. CPU is in microseconds per push; memory is the peak during the send. */
export type Broadcast = {
  readonly pushesPerSecond: number;
  readonly cost: Cost;
  readonly ownCpu: number;
  readonly peakMegabytes: Readonly<Record<string, number>>;
};

/**
 * Measures a send to `devices` devices, from the POST to the last push at the sink. Checks that each is counted once. `send` resolves to the
 * notification's id.
 */
export const largeSend = async (
  system: System,
  sink: Sink,
  devices: number,
  send: () => Promise<string>,
): Promise<Broadcast> => {
  await resetSink(sink);
  for (const name of services) forgetPeak(system.processes[name] ?? 0);
  let seconds = 0;
  let accepted = 0;
  const cost = await costOf(system, devices, async () => {
    const beganAt = Date.now();
    const id = await send();
    seconds = ((await pushed(sink, devices)).lastAt - beganAt) / 1000;
    accepted = await until("the end of the notification", async () => {
      const { status, counts } = await system.progress(id);
      return status === "completed" ? counts.accepted : undefined;
    });
  });
  const { pushes } = await countedBy(sink);
  if (pushes !== devices || accepted !== devices)
    throw new Error(`${devices} devices, ${pushes} pushes, ${accepted} accepted: each must get it once`);
  return {
    pushesPerSecond: devices / seconds,
    cost,
    ownCpu: sumOf(cost, services),
    peakMegabytes: Object.fromEntries(services.map((name) => [name, peakMegabytes(system.processes[name] ?? 0)])),
  };
};

/** Measures a send to a topic with `devices` devices. */
export const broadcast = (system: System, sink: Sink, topic: string, devices: number): Promise<Broadcast> =>
  largeSend(system, sink, devices, () => system.send(topic));

/** The CPU of each process, and the peak memory of each service. */
export const linesOfEach = (broadcasts: readonly Broadcast[]): Line[] => [
  ...partLines(
    broadcasts.map(({ cost }) => cost),
    "µs",
  ),
  ...partLines(
    broadcasts.map((one) => one.peakMegabytes),
    "peak MB",
  ),
];
