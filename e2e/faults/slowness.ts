import { execFile } from "node:child_process";
import { promisify } from "node:util";

const run = promisify(execFile);

/** The time in which node starts and ends without a program on an idle machine. */
const quietMs = 60;

/**
 * How much slower this machine currently is than an idle one: 1 or more. Time limits are multiplied by this factor, because the start of
 * a service is mostly the start of node.
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
