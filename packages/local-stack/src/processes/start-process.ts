import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, mkdirSync, openSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { dirname } from "node:path";
import { createInterface } from "node:readline";
import { unwatch, watch } from "./watchdog.ts";

export type ExitInfo = { code: number | null; signal: NodeJS.Signals | null };

export type RunningProcess = {
  name: string;
  pid: number;
  /** Settles when the process has ended; never rejects. */
  exited: Promise<ExitInfo>;
  /** The same in words. */
  ended: Promise<string>;
  hasExited: () => boolean;
  /** Sends a signal to the process alone. */
  signal: (signal: NodeJS.Signals) => void;
  /** Asks it to stop, then kills its whole group after the deadline. Again and after its end: nothing happens. */
  stop: () => Promise<ExitInfo>;
  /** The end of its log file; empty when its output goes elsewhere. */
  lastWords: () => Promise<string>;
};

export type ProcessOptions = {
  name: string;
  command: string;
  args: readonly string[];
  cwd?: string;
  env?: NodeJS.ProcessEnv;
  /** What asks this program to end in good order. */
  stopSignal: NodeJS.Signals;
  /** How long it may take to do so before it is killed, in milliseconds. */
  stopTimeoutMs: number;
  /** Where its output goes: a file (appended), or line by line. */
  output: { file: string } | { onLine: (line: string) => void };
};

/**
 * Starts a child in a process group of its own, so that a Ctrl-C in the terminal does not hit it before its turn, and
 * puts it on the watchdog's list, so that it does not outlive this process.
 */
export async function startProcess(options: ProcessOptions): Promise<RunningProcess> {
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
  const kill = (target: number, signal: NodeJS.Signals) => {
    try {
      process.kill(target, signal);
    } catch {
      // It ended between the check and the call, which is what was wanted.
    }
  };

  return {
    name,
    pid,
    exited,
    ended: exited.then(({ code, signal }) => `${name} ended with ${signal ?? `exit code ${code}`}`),
    hasExited: () => ended,
    signal: (signal) => {
      if (!ended) kill(pid, signal);
    },
    stop: async () => {
      if (!ended) {
        kill(pid, stopSignal);
        kill(pid, "SIGCONT"); // a frozen process would not see the request
        const timer = setTimeout(() => kill(-pid, "SIGKILL"), options.stopTimeoutMs);
        await exited;
        clearTimeout(timer);
      }
      return exited;
    },
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
