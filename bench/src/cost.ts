import { cpuSeconds } from "./processes.ts";
import type { Profiler } from "./profiler.ts";
import type { Line } from "./table.ts";

/** The processes whose CPU is measured, by name, each with its child processes. */
export type Measured = {
  readonly processes: Readonly<Record<string, number>>;
  readonly profiler?: Profiler | undefined;
};

/** Microseconds of CPU per item, by process. */
export type Cost = Readonly<Record<string, number>>;

export const services = ["gateway", "registry", "dispatch", "analytics"] as const;

/** CPU seconds of each process since its start. */
export const cpuOf = ({ processes }: Measured): Record<string, number> =>
  Object.fromEntries(Object.entries(processes).map(([name, pid]) => [name, cpuSeconds(pid)]));

/** Measures the CPU of `work` per item, for `count` items. `--profile` covers the same time. */
export const costOf = async (of: Measured, count: number, work: () => Promise<void>): Promise<Cost> => {
  await of.profiler?.start();
  const before = cpuOf(of);
  await work();
  const after = cpuOf(of);
  await of.profiler?.stop();
  return Object.fromEntries(
    Object.entries(after).map(([name, seconds]) => [name, ((seconds - (before[name] ?? 0)) * 1e6) / count]),
  );
};

export const sumOf = (cost: Cost, names: readonly string[] = Object.keys(cost)): number =>
  names.reduce((sum, name) => sum + (cost[name] ?? 0), 0);

/** One line per process, with its value in each run. */
export const partLines = (runs: readonly Readonly<Record<string, number>>[], unit: string): Line[] =>
  Object.keys(runs[0] ?? {}).map((name) => ({
    label: `  ${name.padEnd(12)} ${unit}`,
    values: runs.map((run) => run[name] ?? 0),
  }));
