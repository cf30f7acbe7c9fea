import { existsSync } from "node:fs";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";

/** The programs read the file every 50 ms, or later on a busy machine. */
const readWithinMs = 250;

export type DemoClock = NonNullable<Awaited<ReturnType<typeof startDemoClock>>>;

/**
 * The clock of a first start. The API has no field for the time of an event, so the clock starts a day behind and moves forward while the
 * demo project's history is made. Undefined if the history exists already.
 */
export async function startDemoClock(dataDir: string, env: NodeJS.ProcessEnv, behindMs: number) {
  if (existsSync(join(dataDir, "demo-history.json"))) return undefined;
  const file = join(dataDir, "demo-clock");
  const preload = new URL("./shifted-clock.ts", import.meta.url);
  preload.search = encodeURIComponent(file);
  await mkdir(dataDir, { recursive: true });
  await writeFile(file, String(behindMs));
  return {
    /** The environment for programs that use this clock. */
    env: { ...env, NODE_OPTIONS: `${env.NODE_OPTIONS ?? ""} --import=${preload.href}`.trim() },
    /** Sets the programs' clocks back by so many milliseconds. Resolves when they have read it. */
    set: async (ms: number) => {
      await writeFile(file, String(ms));
      await delay(readWithinMs);
    },
    /** Returns the programs to the real time. */
    end: async () => {
      await rm(file, { force: true });
      await delay(readWithinMs);
    },
  };
}
