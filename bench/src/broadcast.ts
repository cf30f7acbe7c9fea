import { setTimeout as delay } from "node:timers/promises";
import type { System } from "./herald.ts";
import { cpuSeconds, forgetPeak, peakMegabytes, withDescendants } from "./processes.ts";
import type { Line } from "./row.ts";
import { countedBy, resetSink, type Sink } from "./sinks.ts";

const own = ["gateway", "registry", "dispatch", "analytics"] as const;
const others = ["nats", "mongo"] as const;

/** What one send to a topic cost. CPU in microseconds a push; memory is the most that was held while it ran. */
export type Broadcast = {
  readonly pushesPerSecond: number;
  readonly cpu: Readonly<Record<string, number>>;
  readonly ownCpu: number;
  readonly peakMegabytes: Readonly<Record<string, number>>;
};

/** Often enough to see the end, seldom enough to cost nothing. */
const pollMs = 100;

/** CPU seconds of each part by now; broker and database with all that they started. */
export const cpuOf = (system: System): Record<string, number> =>
  Object.fromEntries(
    [...own, ...others].map((name) => {
      const pid = system.processes[name];
      if (pid === undefined) return [name, 0];
      const pids = name === "mongo" ? withDescendants(pid) : [pid];
      return [name, pids.reduce((sum, one) => sum + cpuSeconds(one), 0)];
    }),
  );

/** What some work cost each part, in microseconds of CPU for each of so many. */
export const costOf = async (
  system: System,
  count: number,
  work: () => Promise<void>,
): Promise<Record<string, number>> => {
  const before = cpuOf(system);
  await work();
  const after = cpuOf(system);
  return Object.fromEntries(
    Object.entries(after).map(([name, seconds]) => [name, ((seconds - (before[name] ?? 0)) * 1e6) / count]),
  );
};

/** Lines of a figure of each part, by run. */
export const partLines = (runs: readonly Readonly<Record<string, number>>[], unit: string): Line[] =>
  Object.keys(runs[0] ?? {}).map((name) => ({
    label: `  ${name.padEnd(12)} ${unit}`,
    values: runs.map((run) => run[name] ?? 0),
  }));

/** Sends to a topic of so many devices, from the POST to the last push at the sink; then checks that each was counted once. */
export const broadcast = async (system: System, sink: Sink, topic: string, devices: number): Promise<Broadcast> => {
  await resetSink(sink);
  for (const name of own) forgetPeak(system.processes[name] ?? 0);
  const before = cpuOf(system);
  const beginAt = Date.now();
  const id = await system.send(topic);
  let counted = await countedBy(sink);
  while (counted.pushes < devices) {
    await delay(pollMs);
    counted = await countedBy(sink);
  }
  let progress = await system.progress(id);
  while (progress.status !== "completed") {
    await delay(pollMs);
    progress = await system.progress(id);
  }
  const after = cpuOf(system);
  const { pushes } = await countedBy(sink);
  if (pushes !== devices || progress.counts.accepted !== devices)
    throw new Error(
      `${devices} devices, ${pushes} pushes, ${progress.counts.accepted} accepted: each must get it once`,
    );
  const cpu = Object.fromEntries(
    Object.entries(after).map(([name, seconds]) => [name, ((seconds - (before[name] ?? 0)) * 1e6) / devices]),
  );
  return {
    pushesPerSecond: devices / ((counted.lastAt - beginAt) / 1000),
    cpu,
    ownCpu: own.reduce((sum, name) => sum + (cpu[name] ?? 0), 0),
    peakMegabytes: Object.fromEntries(own.map((name) => [name, peakMegabytes(system.processes[name] ?? 0)])),
  };
};

/** The CPU of each part, and the most memory that each service held. */
export const linesOfEach = (broadcasts: readonly Broadcast[]): Line[] => [
  ...partLines(
    broadcasts.map(({ cpu }) => cpu),
    "µs a push",
  ),
  ...partLines(
    broadcasts.map((one) => one.peakMegabytes),
    "peak MB",
  ),
];
