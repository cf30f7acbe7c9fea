import { readFile } from "node:fs/promises";
import { type System, serviceNames } from "../harness/system.ts";

/** Linux counts in hundredths of a second. */
const tickMs = 10;

/** What the services have spent so far, user and system together, in milliseconds of CPU. */
export async function cpuMs(system: System): Promise<number> {
  const spent = serviceNames.map(async (name) => {
    const text = await readFile(`/proc/${system.services[name].pid()}/stat`, "utf8");
    // The name, which may hold spaces, ends with the last parenthesis; utime and stime are the fields 14 and 15.
    const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
    return (Number(fields[11]) + Number(fields[12])) * tickMs;
  });
  return (await Promise.all(spent)).reduce((sum, ms) => sum + ms, 0);
}
