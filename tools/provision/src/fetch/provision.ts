import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, open, readdir, readFile, rename, rm, stat } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { isAlive } from "../processes/start-process.ts";

export type Provision = {
  cache: string;
  /** The content with its version, such as `nats-server-2.15.2`, so that an upgrade uses another folder. */
  name: string;
  progress: (line: string) => void;
};

/**
 * Returns the folder `<cache>/<name>` and builds it first if it does not exist. The build uses another name and renames the folder when
 * complete, so a folder with this name is always complete. The lock only prevents two processes from doing the same work.
 */
export async function provision(where: Provision, build: (folder: string) => Promise<void>): Promise<string> {
  const target = join(where.cache, where.name);
  if (existsSync(target)) return target;
  await mkdir(where.cache, { recursive: true });
  const unlock = await lock(where);
  try {
    if (existsSync(target)) return target;
    await removeLeftovers(where);
    const building = join(where.cache, `${where.name}.building-${process.pid}-${randomBytes(4).toString("hex")}`);
    try {
      await mkdir(building);
      await build(building);
      await rename(building, target).catch(async (error: unknown) => {
        if (!existsSync(target)) throw error; // else another process was first: use its folder
      });
    } finally {
      await rm(building, { recursive: true, force: true });
    }
    return target;
  } finally {
    await unlock();
  }
}

async function lock({ cache, name, progress }: Provision): Promise<() => Promise<void>> {
  const path = join(cache, `${name}.lock`);
  for (let waits = 0; ; waits += 1) {
    try {
      const file = await open(path, "wx");
      await file.writeFile(String(process.pid));
      await file.close();
      return () => rm(path, { force: true });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    }
    if (await isStale(path)) await rm(path, { force: true });
    else {
      if (waits === 0) progress(`${name}: another process is fetching it, waiting`);
      await delay(200);
    }
  }
}

/** A lock is stale if its process has ended, or if it stays empty: its process died between creating and filling it. */
async function isStale(path: string): Promise<boolean> {
  const pid = Number(await readFile(path, "utf8").catch(() => ""));
  if (pid > 0) return !isAlive(pid);
  const made = await stat(path).catch(() => undefined);
  return made !== undefined && Date.now() - made.mtimeMs > 5_000;
}

/** Removes incomplete builds of killed processes. */
async function removeLeftovers({ cache, name }: Provision): Promise<void> {
  for (const entry of await readdir(cache)) {
    if (!entry.startsWith(`${name}.building-`)) continue;
    const pid = Number(entry.slice(name.length + ".building-".length).split("-")[0]);
    if (pid > 0 && !isAlive(pid)) await rm(join(cache, entry), { recursive: true, force: true });
  }
}

/** The folder of fetched programs, shared by all checkouts of this user: `HERALD_CACHE_DIR`, else the user's cache folder. */
export function cacheFolder(env: NodeJS.ProcessEnv): string {
  if (env.HERALD_CACHE_DIR) return env.HERALD_CACHE_DIR;
  return join(env.XDG_CACHE_HOME || join(homedir(), ".cache"), "herald");
}
