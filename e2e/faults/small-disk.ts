import { open, rm } from "node:fs/promises";
import { join } from "node:path";
import { startProcess } from "@herald/provision";
import { eventually } from "@herald/testing";
import { NotHere } from "./row.ts";

export type SmallDisk = {
  readonly folder: string;
  /** Fills the disk to the last byte. */
  fill(): Promise<void>;
  /** Frees the space that `fill` took. */
  relieve(): Promise<void>;
  close(): Promise<void>;
};

const mebibyte = 1_048_576;

/**
 * A disk in memory, mounted in its own namespace. It needs no root, and disappears with the process that holds it. Throws NotHere if the
 * machine does not permit this.
 */
export async function smallDisk(mountPoint: string, mebibytes: number): Promise<SmallDisk> {
  const said: string[] = [];
  const script = `mount -t tmpfs -o size=${mebibytes}m none "$0" && echo mounted && exec sleep infinity`;
  const holder = await startProcess({
    name: "small-disk",
    command: "unshare",
    args: ["--user", "--map-root-user", "--mount", "sh", "-c", script, mountPoint],
    stopSignal: "SIGKILL",
    stopTimeoutMs: 5_000,
    output: { onLine: (line) => said.push(line) },
  }).catch((error: Error) => {
    throw new NotHere(error.message);
  });
  await eventually(() => {
    if (!said.includes("mounted") && !holder.hasExited()) throw new Error("the disk is not mounted yet");
  });
  if (holder.hasExited()) throw new NotHere(`no disk of its own is permitted here: ${said.join(" ")}`);
  const folder = `/proc/${holder.pid}/root${mountPoint}`;
  const ballast = join(folder, "ballast");
  return {
    folder,
    fill: async () => {
      const file = await open(ballast, "a");
      try {
        // Large pieces first, then smaller ones to the last byte.
        for (const size of [mebibyte, 4_096, 1]) {
          const piece = Buffer.alloc(size);
          const more = async () => (await file.write(piece)).bytesWritten > 0;
          while (await more().catch(() => false));
        }
      } finally {
        await file.close();
      }
    },
    relieve: () => rm(ballast, { force: true }),
    close: async () => {
      await holder.stop();
    },
  };
}
