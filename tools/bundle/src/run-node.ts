import { execFile } from "node:child_process";
import { promisify } from "node:util";

/** A program takes a few seconds, and ten times as long on a busy machine. */
const timeout = 180_000;

/**
 * Runs a script of `what` in a Node process of its own, so that its memory is freed. Returns its output. Throws everything that it printed
 * if it fails.
 */
export const runNode = async (
  what: string,
  args: readonly string[],
  options: { readonly cwd?: string; readonly env?: NodeJS.ProcessEnv } = {},
): Promise<string> => {
  try {
    const limits = { timeout, killSignal: "SIGKILL", maxBuffer: 64_000_000 } as const;
    return (await promisify(execFile)(process.execPath, args, { ...options, ...limits })).stdout;
  } catch (error) {
    const { stdout = "", stderr = "", message } = error as Error & { stdout?: string; stderr?: string };
    throw new Error(`${what}: ${`${stdout}${stderr}`.trim() || message}`);
  }
};
