import { readFile } from "node:fs/promises";
import type { ServiceName, System } from "../harness/system.ts";

/** What a service's process holds, in MB, as the operating system counts it. */
export async function memoryOf(system: System, service: ServiceName): Promise<number> {
  const status = await readFile(`/proc/${system.services[service].pid()}/status`, "utf8").catch(() => "");
  const kilobytes = /^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1];
  if (kilobytes !== undefined) return Math.round(Number(kilobytes) / 1_024);
  const metrics = await (await fetch(system.services[service].metrics)).text();
  return Math.round(Number(/^process_resident_memory_bytes(?:\{.*\})? (\S+)$/m.exec(metrics)?.[1]) / 2 ** 20);
}
