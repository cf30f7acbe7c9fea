import { setTimeout as delay } from "node:timers/promises";
import { services } from "../cost.ts";
import { residentMegabytes } from "../processes.ts";
import type { Row } from "../row.ts";

/** Pause before each measurement, so that the memory of the start is released. */
const pauseMs = 3_000;

/** The memory of each service after its start, without any work. Must be the first row, because later rows leave memory in use. */
export const idleMemoryRow: Row = {
  name: "idle-memory",
  about: "resident memory of each service after the start, before anything is sent",
  async *measure({ system, runs }) {
    const held: Record<string, number>[] = [];
    for (let run = 0; run < runs; run++) {
      await delay(pauseMs);
      held.push(Object.fromEntries(services.map((name) => [name, residentMegabytes(system.processes[name] ?? 0)])));
    }
    yield {
      title: "resident memory of each service, idle",
      lines: [
        ...services.map((name) => ({ label: `${name}, MB`, values: held.map((one) => one[name] ?? 0) })),
        {
          label: "the largest of them, MB",
          values: held.map((one) => Math.max(...Object.values(one))),
          figure: "idle-memory",
        },
      ],
    };
  },
};
