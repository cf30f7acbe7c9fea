import { execFile } from "node:child_process";
import { promisify } from "node:util";

/** Images for two processors, one of which is emulated, take up to an hour. */
const timeoutMs = 7_200_000;

/** Runs a program to its end and returns what it wrote to stdout. Throws with all its output if it fails. */
export const must = async (
  command: string,
  args: readonly string[],
  options: { readonly cwd: string; readonly env?: NodeJS.ProcessEnv },
): Promise<string> => {
  try {
    const run = promisify(execFile);
    return (await run(command, args, { ...options, timeout: timeoutMs, maxBuffer: 64_000_000 })).stdout;
  } catch (error) {
    const { stdout = "", stderr = "", message } = error as Error & { stdout?: string; stderr?: string };
    throw new Error(`${command} ${args.join(" ")} failed:\n${`${stdout}${stderr}`.trim() || message}`);
  }
};
