import { cpuSeconds } from "./processes.ts";
import type { Profiler } from "./profiler.ts";
import type { Line } from "./table.ts";

/** Processes by name, whose CPU is measured; those that they started count with them. */
export type Measured = {
  readonly processes: Readonly<Record<string, number>>;
  readonly profiler?: Profiler | undefined;
};

/** Microseconds of CPU for each of so many, by process. */
export type Cost = Readonly<Record<string, number>>;

export const services = ["gateway", "registry", "dispatch", "analytics"] as const;

/** CPU seconds by now, of each process. */
export const cpuOf = ({ processes }: Measured): Record<string, number> =>
  Object.fromEntries(Object.entries(processes).map(([name, pid]) => [name, cpuSeconds(pid)]));

/** What some work cost, for each of so many. This is also what `--profile` covers. */
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

/** Lines of a figure of each process, by run. */
export const partLines = (runs: readonly Readonly<Record<string, number>>[], unit: string): Line[] =>
  Object.keys(runs[0] ?? {}).map((name) => ({
    label: `  ${name.padEnd(12)} ${unit}`,
    values: runs.map((run) => run[name] ?? 0),
  }));
