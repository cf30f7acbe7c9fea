import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type AnalyticsAccess, isAlive } from "@herald/provision";
import type { DemoProject, SimulatorAddresses } from "./demo-project.ts";

const lockFile = (dataDir: string) => join(dataDir, "start.pid");

/** The process that runs on this data folder, if any. */
export async function runningPid(dataDir: string): Promise<number | undefined> {
  const pid = Number(await readFile(lockFile(dataDir), "utf8").catch(() => ""));
  return pid > 0 && isAlive(pid) ? pid : undefined;
}

/** Allows one start per data folder. `wasKilled`: the previous start left its lock behind. The end of this process releases it, too. */
export async function takeRunLock(dataDir: string): Promise<{ wasKilled: boolean; release: () => void }> {
  await mkdir(dataDir, { recursive: true, mode: 0o700 });
  const file = lockFile(dataDir);
  const take = () => writeFile(file, String(process.pid), { flag: "wx" });
  let wasKilled = false;
  try {
    await take();
  } catch {
    const pid = await runningPid(dataDir);
    if (pid !== undefined) {
      throw new Error(
        `Herald runs on ${dataDir} already, as process ${pid} (if that is another program, remove ${file})`,
      );
    }
    wasKilled = true;
    await rm(file, { force: true });
    await take();
  }
  const release = () => {
    process.off("exit", release);
    // Another start may have taken over the lock, or the folder is gone.
    if (existsSync(file) && readFileSync(file, "utf8") === String(process.pid)) rmSync(file, { force: true });
  };
  process.on("exit", release);
  return { wasKilled, release };
}

/** `.herald/local.json`: the addresses of all parts, for scripts. It exists only while Herald is ready. */
export type LocalFile = {
  gateway: string;
  adminToken: string;
  project: DemoProject;
  simulators: SimulatorAddresses;
  /** The site of `examples/web`. */
  example: string;
  /** For a broker given by HERALD_NATS_URL, the users come from the environment, if it has any. */
  nats: { url: string; user?: string; password?: string; analytics: AnalyticsAccess };
  mongo: { url: string };
  /** Process ids of the parts started here; they change when a part restarts. */
  processes: Record<string, number>;
};

/** The file of one start. It is written at once, because parts may restart at the same moment, and never after its removal. */
export function localFile(dataDir: string) {
  const path = join(dataDir, "local.json");
  let removed = false;
  return {
    /** Writes the file atomically, because scripts wait for it to appear. */
    write: (content: LocalFile): void => {
      if (removed) return;
      writeFileSync(`${path}.new`, `${JSON.stringify(content, null, 2)}\n`, { mode: 0o600 });
      renameSync(`${path}.new`, path);
    },
    remove: (): void => {
      removed = true;
      rmSync(path, { force: true });
    },
  };
}
