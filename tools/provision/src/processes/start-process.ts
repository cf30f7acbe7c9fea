import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, mkdirSync, openSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { dirname } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as delay } from "node:timers/promises";
import { sendSignal, unwatch, watch } from "./watchdog.ts";

type ExitInfo = { code: number | null; signal: NodeJS.Signals | null };

export type RunningProcess = Awaited<ReturnType<typeof startProcess>>;

export type ProcessOptions = {
  name: string;
  command: string;
  args: readonly string[];
  cwd?: string;
  env?: NodeJS.ProcessEnv;
  /** The signal for a graceful stop of this program. */
  stopSignal: NodeJS.Signals;
  /** How long a graceful stop may take before the process is killed, in milliseconds. */
  stopTimeoutMs: number;
  /** Where its output goes: a file (appended), or line by line. */
  output: { file: string } | { onLine: (line: string) => void };
};

/**
 * Starts a child in its own process group, so that Ctrl-C in the terminal does not end it before its turn, and registers it with the
 * watchdog, so that it does not outlive this process.
 */
export async function startProcess(options: ProcessOptions) {
  const { name, command, args, stopSignal, output } = options;
  const child = spawnChild(options);
  await new Promise<void>((resolve, reject) => {
    child.once("spawn", resolve);
    child.once("error", (error) => reject(new Error(`${name} did not start: ${command}: ${error.message}`)));
  });
  const pid = child.pid;
  if (pid === undefined) throw new Error(`${name} did not start: ${command} ${args.join(" ")}`);
  watch(pid, stopSignal);

  let ended = false;
  const exited = new Promise<ExitInfo>((resolve) => {
    child.once("exit", (code, signal) => {
      ended = true;
      unwatch(pid);
      resolve({ code, signal });
    });
  });

  return {
    name,
    pid,
    /** Settles when the process has ended; never rejects. */
    exited,
    /** Settles with `exited` in words. */
    ended: exited.then(({ code, signal }) => `${name} ended with ${signal ?? `exit code ${code}`}`),
    hasExited: () => ended,
    /** Sends a signal to the process alone. */
    signal: (signal: NodeJS.Signals) => {
      if (!ended) sendSignal(pid, signal);
    },
    /** Asks the process to stop, then kills its whole group after the deadline. Safe to call again, and after its end. */
    stop: async () => {
      if (!ended) {
        sendSignal(pid, stopSignal);
        sendSignal(pid, "SIGCONT"); // a frozen process would not receive the signal
        const timer = setTimeout(() => sendSignal(-pid, "SIGKILL"), options.stopTimeoutMs);
        await exited;
        clearTimeout(timer);
      }
      return exited;
    },
    /** The last lines of its log file; empty when its output goes elsewhere. */
    lastWords: async () => {
      if (!("file" in output)) return "";
      const text = await readFile(output.file, "utf8").catch(() => "");
      return text.trimEnd().split("\n").slice(-8).join("\n");
    },
  };
}

function spawnChild({ command, args, cwd, env, output }: ProcessOptions): ChildProcess {
  const common = { cwd, env: env ?? process.env, detached: true };
  if ("file" in output) {
    mkdirSync(dirname(output.file), { recursive: true });
    const log = openSync(output.file, "a");
    try {
      return spawn(command, args, { ...common, stdio: ["ignore", log, log] });
    } finally {
      closeSync(log);
    }
  }
  const child = spawn(command, args, { ...common, stdio: ["ignore", "pipe", "pipe"] });
  for (const stream of [child.stdout, child.stderr]) createInterface({ input: stream }).on("line", output.onLine);
  return child;
}

/**
 * Calls `probe` until it returns a value. If the process ends first, or after the deadline, stops the process and throws an error with
 * the end of its log.
 */
export async function waitUntilReady<T>(
  running: RunningProcess,
  probe: () => Promise<T | undefined>,
  timeoutMs: number,
): Promise<T> {
  const deadline = Date.now() + timeoutMs;
  let lastError: unknown;
  while (!running.hasExited() && Date.now() < deadline) {
    try {
      const value = await probe();
      if (value !== undefined) return value;
    } catch (error) {
      lastError = error;
    }
    await delay(25); // cheap, and short compared with a start of 100 ms to 2 s
  }
  const reason = running.hasExited() ? "ended while starting" : `was not ready after ${timeoutMs / 1000} s`;
  await running.stop();
  const detail = [await running.lastWords(), lastError instanceof Error ? lastError.message : ""].filter(Boolean);
  throw new Error([`${running.name} ${reason}`, ...detail].join("\n"), { cause: lastError });
}

/** Whether a process with this id runs, of any user. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}
