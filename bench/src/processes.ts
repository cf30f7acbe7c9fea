import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { createInterface } from "node:readline";

/** Linux counts CPU time in hundredths of a second. */
const ticksPerSecond = 100;

/** A file of a process in /proc. Empty if the process has ended, which workers of a database do often. */
const aboutProcess = (pid: number, file: string): string => {
  try {
    return readFileSync(`/proc/${pid}/${file}`, "utf8");
  } catch {
    return "";
  }
};

/** CPU seconds, user and system, of a process with all its threads and its children that have ended. Linux only: it reads /proc. */
const cpuSecondsOfOne = (pid: number): number => {
  const stat = aboutProcess(pid, "stat");
  // The name may hold spaces, so count from its closing bracket.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks), 0) / ticksPerSecond;
};

const megabytes = (pid: number, field: "VmHWM" | "VmRSS"): number => {
  const kilobytes = new RegExp(`${field}:\\s+(\\d+)`).exec(aboutProcess(pid, "status"))?.[1];
  return Math.round(Number(kilobytes) / 1024);
};

/** The memory that a process holds now, in MB. */
export const residentMegabytes = (pid: number): number => megabytes(pid, "VmRSS");

/** Resets the peak that {@link peakMegabytes} reads. */
export const forgetPeak = (pid: number): void => writeFileSync(`/proc/${pid}/clear_refs`, "5");

/** The peak memory of a process since its start or since {@link forgetPeak}, in MB. */
export const peakMegabytes = (pid: number): number => megabytes(pid, "VmHWM");

const childrenOf = (pid: number): number[] => {
  const text = aboutProcess(pid, `task/${pid}/children`);
  return text.split(" ").filter(Boolean).map(Number);
};

/** CPU seconds of a process and all its child processes: a database has several. */
export const cpuSeconds = (pid: number): number =>
  cpuSecondsOfOne(pid) + childrenOf(pid).reduce((sum, child) => sum + cpuSeconds(child), 0);

/** The first child process with an argument that ends in `argument`: a loader may start the program, so its name is not the first one. */
export const childOf = (pid: number, argument: string): number | undefined =>
  childrenOf(pid).find((child) =>
    aboutProcess(child, "cmdline")
      .split("\0")
      .some((one) => one.endsWith(argument)),
  );

const root = new URL("../../", import.meta.url).pathname;

/** Starts one of the repository's programs. It can be written to. */
export const start = (entry: string, args: readonly string[] = [], env: NodeJS.ProcessEnv = {}): ChildProcess =>
  spawn(process.execPath, ["--conditions=@herald/source", `${root}${entry}`, ...args], {
    cwd: root,
    env: { ...process.env, ...env },
    stdio: ["pipe", "pipe", "inherit"],
  });

/** The first line that a program prints, as JSON. */
export const firstLine = async <T>(child: ChildProcess): Promise<T> => {
  if (child.stdout === null) throw new Error("the program prints nowhere");
  const lines = createInterface({ input: child.stdout });
  const [line] = (await Promise.race([once(lines, "line"), once(lines, "close")])) as [string?];
  if (line === undefined) throw new Error(`${child.spawnargs[2]} ended before it printed anything`);
  return JSON.parse(line) as T;
};

/** Runs one of the repository's programs to its end, and resolves to its line of JSON. */
export const resultOf = async <T>(entry: string, args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<T> => {
  const child = start(entry, args, env);
  const result = await firstLine<T>(child);
  if (child.exitCode === null) await once(child, "exit");
  return result;
};

/** Asks a program to end, and waits for its end. */
export const end = async (child: ChildProcess): Promise<void> => {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, "exit");
  child.kill("SIGTERM");
  await exited;
};
