import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { createInterface } from "node:readline";

/** Linux counts CPU time in hundredths of a second. */
const ticksPerSecond = 100;

/** CPU seconds, user and system, of a process with all its threads. Linux only: it reads /proc. */
export const cpuSeconds = (pid: number): number => {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  // The name may hold spaces, so count from its closing bracket.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) / ticksPerSecond;
};

/** From now on {@link peakMegabytes} counts anew. */
export const forgetPeak = (pid: number): void => writeFileSync(`/proc/${pid}/clear_refs`, "5");

/** The most memory that a process held since it started, or since its peak was forgotten, in MB. */
export const peakMegabytes = (pid: number): number => {
  const kilobytes = /VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
  return Math.round(Number(kilobytes) / 1024);
};

/** A process and all that it started, for a database that is made of several. */
export const withDescendants = (pid: number): number[] => {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").split(" ").filter(Boolean).map(Number);
  return [pid, ...children.flatMap(withDescendants)];
};

const root = new URL("../../", import.meta.url).pathname;

/** Starts one of the repository's programs. */
export const start = (entry: string, args: readonly string[] = [], env: NodeJS.ProcessEnv = {}): ChildProcess =>
  spawn(process.execPath, ["--conditions=@herald/source", `${root}${entry}`, ...args], {
    cwd: root,
    env: { ...process.env, ...env },
    stdio: ["ignore", "pipe", "inherit"],
  });

/** The first line that a program prints, as JSON. */
export const firstLine = async <T>(child: ChildProcess): Promise<T> => {
  if (child.stdout === null) throw new Error("the program prints nowhere");
  const [line] = await once(createInterface({ input: child.stdout }), "line");
  return JSON.parse(String(line)) as T;
};

/** Asks a program to end and waits until it has. */
export const end = async (child: ChildProcess): Promise<void> => {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, "exit");
  child.kill("SIGTERM");
  await exited;
};
