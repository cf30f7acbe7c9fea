import { readFileSync, rmSync } from "node:fs";
import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { isAlive } from "../processes/is-alive.ts";

const lockFile = (dataDir: string) => join(dataDir, "start.pid");

/** The process that runs on this data folder, if one does. */
export async function whoRuns(dataDir: string): Promise<number | undefined> {
  const pid = Number(await readFile(lockFile(dataDir), "utf8").catch(() => ""));
  return pid > 0 && isAlive(pid) ? pid : undefined;
}

/** One start per data folder. Says whether the one before ended without letting go, as it does when it is killed. */
export async function takeRunLock(dataDir: string): Promise<{ wasKilled: boolean }> {
  await mkdir(dataDir, { recursive: true, mode: 0o700 });
  const file = lockFile(dataDir);
  const take = () => writeFile(file, String(process.pid), { flag: "wx" });
  let wasKilled = false;
  try {
    await take();
  } catch {
    const pid = await whoRuns(dataDir);
    if (pid !== undefined) {
      throw new Error(
        `Herald runs on ${dataDir} already, as process ${pid} (if that is another program, remove ${file})`,
      );
    }
    wasKilled = true;
    await rm(file, { force: true });
    await take();
  }
  process.once("exit", () => {
    if (holderOf(file) === process.pid) rmSync(file, { force: true });
  });
  return { wasKilled };
}

function holderOf(file: string): number | undefined {
  try {
    return Number(readFileSync(file, "utf8"));
  } catch {
    return undefined; // the data folder was removed meanwhile
  }
}
