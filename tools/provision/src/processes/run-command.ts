import { spawn } from "node:child_process";
import { constants } from "node:fs";
import { access } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { sendSignal, unwatch, watch } from "./watchdog.ts";

export type CommandResult = { ok: boolean; stdout: string; why: string };

export type CommandOptions = {
  timeoutMs: number;
  /** Kills the program if it prints nothing within this time. For programs that show progress at once. */
  firstOutputWithinMs?: number;
  env?: NodeJS.ProcessEnv;
  cwd?: string;
};

/**
 * Runs a command to its end and never throws: a missing, slow or failing tool is a normal result while Herald looks for usable tools.
 * `why` is empty on success, else one line to show to the user.
 */
export function runCommand(command: string, args: readonly string[], options: CommandOptions): Promise<CommandResult> {
  return new Promise((resolve) => {
    const child = spawn(command, args, {
      cwd: options.cwd,
      env: options.env ?? process.env,
      stdio: ["ignore", "pipe", "pipe"],
      detached: true, // its own process group, so that its children end with it
    });
    const { pid } = child;
    if (pid !== undefined) watch(pid, "SIGKILL");
    let stdout = "";
    let stderr = "";
    let gaveUpAfterMs = 0;
    const giveUpAfter = (ms: number) =>
      setTimeout(() => {
        gaveUpAfterMs = ms;
        if (pid !== undefined) sendSignal(-pid, "SIGKILL");
      }, ms);
    const deadline = giveUpAfter(options.timeoutMs);
    const outputTimer =
      options.firstOutputWithinMs === undefined ? undefined : giveUpAfter(options.firstOutputWithinMs);
    const end = (result: CommandResult) => {
      clearTimeout(deadline);
      clearTimeout(outputTimer);
      if (pid !== undefined) unwatch(pid);
      resolve(result);
    };

    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      clearTimeout(outputTimer);
      stdout += text;
    });
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      clearTimeout(outputTimer);
      stderr += text;
    });
    child.on("error", (error: NodeJS.ErrnoException) => {
      end({ ok: false, stdout, why: error.code === "ENOENT" ? `${command} is not installed` : error.message });
    });
    child.on("close", (code, signal) => {
      if (code === 0) return end({ ok: true, stdout, why: "" });
      const said = lastLine(stderr) ?? lastLine(stdout) ?? `${command} ended with ${code ?? signal}`;
      end({ ok: false, stdout, why: gaveUpAfterMs ? `${command} gave no answer in ${gaveUpAfterMs / 1000} s` : said });
    });
  });
}

const lastLine = (text: string) => text.trimEnd().split("\n").at(-1)?.trim() || undefined;

/** The first executable with this name on the given PATH. */
export async function findBinary(name: string, path: string | undefined): Promise<string | undefined> {
  for (const folder of (path ?? "").split(delimiter).filter(Boolean)) {
    const candidate = join(folder, name);
    const refused = await access(candidate, constants.X_OK).catch((error: Error) => error);
    if (!refused) return candidate;
  }
  return undefined;
}

/** The version in the output of `--version`, such as `2.15.2`. */
export async function binaryVersion(binary: string): Promise<string | undefined> {
  const { ok, stdout } = await runCommand(binary, ["--version"], { timeoutMs: 10_000 });
  return ok ? /v?(\d+\.\d+(?:\.\d+)?)/.exec(stdout)?.[1] : undefined;
}

/** Compares major and minor only, because this package's minimum versions have no patch number. */
export function isAtLeast(version: string, minimum: string): boolean {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  const [minMajor = 0, minMinor = 0] = minimum.split(".").map(Number);
  return major > minMajor || (major === minMajor && minor >= minMinor);
}

/** Whole seconds since a time of `Date.now()`, to show how long a step took. */
export const secondsSince = (begunAt: number): number => Math.round((Date.now() - begunAt) / 1_000);
