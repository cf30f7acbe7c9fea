import { randomBytes } from "node:crypto";
import { mkdir, open, readdir, readFile, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { isAlive } from "../processes/is-alive.ts";

export type Provision = {
  cache: string;
  /** Names what is inside with its version, so that an upgrade is another folder: `nats-server-2.15.2`. */
  name: string;
  progress: (line: string) => void;
};

/**
 * Gives the folder `<cache>/<name>`, building it first when it is not there. It is built under another name and renamed
 * when complete, so a folder of that name is always whole; the lock only saves two processes from doing the same work.
 */
export async function provision(where: Provision, build: (folder: string) => Promise<void>): Promise<string> {
  const target = join(where.cache, where.name);
  if (await exists(target)) return target;
  await mkdir(where.cache, { recursive: true });
  const unlock = await lock(where);
  try {
    if (await exists(target)) return target;
    await removeLeftovers(where);
    const building = join(where.cache, `${where.name}.building-${process.pid}-${randomBytes(4).toString("hex")}`);
    try {
      await mkdir(building);
      await build(building);
      await rename(building, target).catch(async (error: unknown) => {
        if (!(await exists(target))) throw error; // else another process was first, and its folder is as good
      });
    } finally {
      await rm(building, { recursive: true, force: true });
    }
    return target;
  } finally {
    await unlock();
  }
}

export async function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
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

/** A lock whose process is gone, or that stayed empty for so long that its process died between making and filling it. */
async function isStale(path: string): Promise<boolean> {
  const pid = Number(await readFile(path, "utf8").catch(() => ""));
  if (pid > 0) return !isAlive(pid);
  const made = await stat(path).catch(() => undefined);
  return made !== undefined && Date.now() - made.mtimeMs > 5_000;
}

/** What a killed process left half built. */
async function removeLeftovers({ cache, name }: Provision): Promise<void> {
  for (const entry of await readdir(cache)) {
    if (!entry.startsWith(`${name}.building-`)) continue;
    const pid = Number(entry.slice(name.length + ".building-".length).split("-")[0]);
    if (pid > 0 && !isAlive(pid)) await rm(join(cache, entry), { recursive: true, force: true });
  }
}
