import { readFile } from "node:fs/promises";
import type { ServiceName, System } from "../harness/system.ts";

/** The unit of CPU time in /proc, USER_HZ, which does not depend on the kernel's clock. */
const msPerTick = 10;

/** Processor time of a service's process so far, user and system, in ms. */
async function cpuOf(system: System, service: ServiceName): Promise<number> {
  const stat = await readFile(`/proc/${system.services[service].pid()}/stat`, "utf8");
  // The second field is the program's name in parentheses, which may hold spaces.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) * msPerTick;
}

/** CPU time of a service in ms per request, rounded to 0.01. */
export async function cpuFor(
  system: System,
  service: ServiceName,
  requests: number,
  send: () => Promise<unknown>,
): Promise<number> {
  const before = await cpuOf(system, service);
  await send();
  return Math.round(((await cpuOf(system, service)) - before) / (requests / 100)) / 100;
}
