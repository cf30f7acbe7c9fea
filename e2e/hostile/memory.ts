import { readFile } from "node:fs/promises";
import { readMetrics } from "../harness/metrics.ts";
import type { ServiceName, System } from "../harness/system.ts";

/** The resident memory of a service's process in MB. */
export async function memoryOf(system: System, service: ServiceName): Promise<number> {
  const status = await readFile(`/proc/${system.services[service].pid()}/status`, "utf8").catch(() => "");
  const kilobytes = /^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1];
  if (kilobytes !== undefined) return Math.round(Number(kilobytes) / 1_024);
  const metrics = await readMetrics(system.services[service].metrics);
  return Math.round(Number(/^process_resident_memory_bytes(?:\{.*\})? (\S+)$/m.exec(metrics)?.[1]) / 2 ** 20);
}
