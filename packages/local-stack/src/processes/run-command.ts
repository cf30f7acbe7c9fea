import { spawn } from "node:child_process";
import { unwatch, watch } from "./watchdog.ts";

export type CommandResult = { ok: boolean; stdout: string; why: string };

export type CommandOptions = {
  timeoutMs: number;
  /** For a program that says something as soon as it gets anywhere. */
  firstOutputWithinMs?: number;
  env?: NodeJS.ProcessEnv;
  cwd?: string;
};

/**
 * Runs a command to its end and never throws: a tool that is missing, slow or failing is an ordinary answer while looking
 * for what a machine can do. `why` is empty on success, else one line fit to show.
 */
export function runCommand(command: string, args: readonly string[], options: CommandOptions): Promise<CommandResult> {
  return new Promise((resolve) => {
    const child = spawn(command, args, {
      cwd: options.cwd,
      env: options.env ?? process.env,
      stdio: ["ignore", "pipe", "pipe"],
      detached: true, // a group, so that what it starts ends with it
    });
    const { pid } = child;
    if (pid !== undefined) watch(pid, "SIGKILL");
    let stdout = "";
    let stderr = "";
    let gaveUpAfterMs = 0;
    const giveUpAfter = (ms: number) =>
      setTimeout(() => {
        gaveUpAfterMs = ms;
        if (pid !== undefined) killGroup(pid);
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

function killGroup(pid: number): void {
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // It ended between the deadline and the call.
  }
}

function lastLine(text: string): string | undefined {
  return text
    .split("\n")
    .map((line) => line.trim())
    .filter(Boolean)
    .at(-1);
}
