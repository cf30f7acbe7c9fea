import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { parse } from "yaml";
import { readMetrics } from "../harness/metrics.ts";
import { type ServiceName, type System, serviceNames } from "../harness/system.ts";

const statusOf = (pid: number): Promise<string> => readFile(`/proc/${pid}/status`, "utf8").catch(() => "");

const megabytes = (status: string, field: "VmRSS" | "VmHWM"): number | undefined => {
  const kilobytes = new RegExp(`^${field}:\\s+(\\d+) kB$`, "m").exec(status)?.[1];
  return kilobytes === undefined ? undefined : Math.round(Number(kilobytes) / 1_024);
};

/** The resident memory of a process in MB. Undefined if this system does not tell. */
export const memoryOfProcess = async (pid: number): Promise<number | undefined> =>
  megabytes(await statusOf(pid), "VmRSS");

/** The resident memory of a service's process in MB. */
export async function memoryOf(system: System, service: ServiceName): Promise<number> {
  const resident = await memoryOfProcess(system.services[service].pid());
  if (resident !== undefined) return resident;
  const metrics = await readMetrics(system.services[service].metrics);
  return Math.round(Number(/^process_resident_memory_bytes(?:\{.*\})? (\S+)$/m.exec(metrics)?.[1]) / 2 ** 20);
}

/** The largest resident memory of a service in MB, seen a few times a second while `during` runs. */
export async function peakMemory(system: System, service: ServiceName, during: Promise<unknown>): Promise<number> {
  let running = true;
  let max = 0;
  const looking = (async () => {
    for (; running; await delay(100)) max = Math.max(max, await memoryOf(system, service));
  })();
  await during.finally(() => {
    running = false;
  });
  await looking;
  return max;
}

type Compose = { readonly services: Readonly<Record<string, { readonly mem_limit?: string }>> };

/** What each service may take where compose runs it, in MB. */
const limits = async (): Promise<ReadonlyMap<ServiceName, number>> => {
  const file = await readFile(join(import.meta.dirname, "../../docker-compose.yml"), "utf8");
  const { services }: Compose = parse(file, { merge: true });
  return new Map(
    serviceNames.map((name) => {
      const [, size = "", unit] = /^(\d+)([mg])$/.exec(services[name]?.mem_limit ?? "") ?? [];
      if (unit === undefined) throw new Error(`docker-compose.yml limits no memory of ${name}`);
      return [name, Number(size) * (unit === "g" ? 1_024 : 1)];
    }),
  );
};

/** The services whose process has taken more memory since its start than compose would let it, which would have ended it there. */
export async function overComposeLimit(system: System): Promise<string[]> {
  const over: string[] = [];
  for (const [name, limit] of await limits()) {
    const peak = megabytes(await statusOf(system.services[name].pid()), "VmHWM");
    if (peak !== undefined && peak > limit) over.push(`${name} took ${peak} MB, and compose ends it at ${limit}`);
  }
  return over;
}
