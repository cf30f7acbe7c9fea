import { readFile } from "node:fs/promises";
import { readMetrics } from "../harness/metrics.ts";
import type { ServiceName, System } from "../harness/system.ts";

/** The resident memory of a process in MB. Undefined if this system does not tell. */
export const memoryOfProcess = async (pid: number): Promise<number | undefined> => {
  const status = await readFile(`/proc/${pid}/status`, "utf8").catch(() => "");
  const kilobytes = /^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1];
  return kilobytes === undefined ? undefined : Math.round(Number(kilobytes) / 1_024);
};

/** The resident memory of a service's process in MB. */
export async function memoryOf(system: System, service: ServiceName): Promise<number> {
  const resident = await memoryOfProcess(system.services[service].pid());
  if (resident !== undefined) return resident;
  const metrics = await readMetrics(system.services[service].metrics);
  return Math.round(Number(/^process_resident_memory_bytes(?:\{.*\})? (\S+)$/m.exec(metrics)?.[1]) / 2 ** 20);
}
