import { readFile } from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";
import { readMetrics } from "../harness/metrics.ts";
import type { System } from "../harness/system.ts";
import { memoryOf } from "./memory.ts";

/** Bytes of bodies and answers in the gateway's memory, from its gauge. */
export const heldBytes = async (system: System): Promise<number> => {
  const text = await readMetrics(system.services.gateway.metrics);
  return Number(/^herald_http_memory_bytes(?:\{[^}]*\})? (\S+)$/m.exec(text)?.[1] ?? Number.NaN);
};

/** Records the peak memory, in MB, and the peak of held bytes of the gateway, until it is stopped. */
export const watchHeld = (system: System) => {
  const most = { max: 0, held: 0 };
  let watching = true;
  const watch = (async () => {
    while (watching) {
      most.max = Math.max(most.max, await memoryOf(system, "gateway"));
      most.held = Math.max(most.held, await heldBytes(system));
      await delay(250);
    }
  })();
  return {
    stop: async () => {
      watching = false;
      await watch;
      return most;
    },
  };
};

/** Open connections of strangers, from Linux's list: `127.9.…` is in reverse byte order, 01 means established. */
export const strangersConnected = async (system: System): Promise<number> => {
  const port = Number(new URL(system.gateway).port).toString(16).toUpperCase().padStart(4, "0");
  const tables = await Promise.all(["tcp", "tcp6"].map((name) => readFile(`/proc/net/${name}`, "utf8")));
  return tables.join("").match(new RegExp(`:${port} [0-9A-F]*097F:[0-9A-F]{4} 01 `, "g"))?.length ?? 0;
};
