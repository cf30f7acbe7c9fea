import { execFile } from "node:child_process";
import { promisify } from "node:util";

const run = promisify(execFile);

/** What an empty node takes to start and end on a machine with nothing else to do. */
const quietMs = 60;

/**
 * How much slower than a quiet machine this one is in this moment: 1 or more. A limit of time is stretched by it, since a
 * service that starts is mostly node that starts.
 */
export async function slowness(): Promise<number> {
  const took: number[] = [];
  for (let count = 0; count < 3; count++) {
    const from = performance.now();
    await run(process.execPath, ["-e", "0"]);
    took.push(performance.now() - from);
  }
  took.sort((one, other) => one - other);
  return Math.max(1, (took[1] ?? quietMs) / quietMs);
}
