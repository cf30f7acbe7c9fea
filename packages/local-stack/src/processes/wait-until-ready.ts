import { setTimeout as delay } from "node:timers/promises";
import type { RunningProcess } from "./start-process.ts";

/**
 * Asks `probe` until it gives a value. Fails as soon as the process has ended, or after the deadline; either way the error
 * carries the end of the process's log and the process is stopped.
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
    await delay(25); // short beside a start of 100 ms to 2 s, and cheap
  }
  const reason = running.hasExited() ? "ended while starting" : `was not ready after ${timeoutMs / 1000} s`;
  await running.stop();
  const detail = [await running.lastWords(), lastError instanceof Error ? lastError.message : ""].filter(Boolean);
  throw new Error([`${running.name} ${reason}`, ...detail].join("\n"), { cause: lastError });
}
