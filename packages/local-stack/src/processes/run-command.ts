import { spawn } from "node:child_process";

export type CommandResult = { ok: boolean; stdout: string; why: string };

/**
 * Runs a command to its end and never throws: a tool that is missing, slow or failing is an ordinary answer while looking
 * for what a machine can do. `why` is empty on success, else one line fit to show.
 */
export function runCommand(
  command: string,
  args: readonly string[],
  options: { timeoutMs: number; env?: NodeJS.ProcessEnv; cwd?: string; onLine?: (line: string) => void },
): Promise<CommandResult> {
  return new Promise((resolve) => {
    const child = spawn(command, args, {
      cwd: options.cwd,
      env: options.env ?? process.env,
      stdio: ["ignore", "pipe", "pipe"],
    });
    let stdout = "";
    let stderr = "";
    let timedOut = false;
    const timer = setTimeout(() => {
      timedOut = true;
      child.kill("SIGKILL");
    }, options.timeoutMs);
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      stdout += text;
      for (const line of text.split("\n")) if (line.trim()) options.onLine?.(line.trim());
    });
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      stderr += text;
      for (const line of text.split("\n")) if (line.trim()) options.onLine?.(line.trim());
    });
    child.on("error", (error: NodeJS.ErrnoException) => {
      clearTimeout(timer);
      resolve({ ok: false, stdout, why: error.code === "ENOENT" ? `${command} is not installed` : error.message });
    });
    child.on("close", (code, signal) => {
      clearTimeout(timer);
      if (code === 0) resolve({ ok: true, stdout, why: "" });
      else if (timedOut)
        resolve({ ok: false, stdout, why: `${command} gave no answer in ${options.timeoutMs / 1000} s` });
      else
        resolve({
          ok: false,
          stdout,
          why: lastLine(stderr) ?? lastLine(stdout) ?? `${command} ended with ${code ?? signal}`,
        });
    });
  });
}

function lastLine(text: string): string | undefined {
  return text
    .split("\n")
    .map((line) => line.trim())
    .filter(Boolean)
    .at(-1);
}
