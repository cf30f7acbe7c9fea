import { readFile } from "node:fs/promises";
import { type System, serviceNames } from "../harness/system.ts";

/** Linux counts in hundredths of a second. */
const tickMs = 10;

/** CPU time of all services so far, user and system, in milliseconds. */
export async function cpuMs(system: System): Promise<number> {
  const spent = serviceNames.map(async (name) => {
    const text = await readFile(`/proc/${system.services[name].pid()}/stat`, "utf8");
    // The name may contain spaces and ends with the last parenthesis. Fields 14 and 15 are utime and stime.
    const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
    return (Number(fields[11]) + Number(fields[12])) * tickMs;
  });
  return (await Promise.all(spent)).reduce((sum, ms) => sum + ms, 0);
}
