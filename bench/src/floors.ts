import { end, firstLine, start } from "./processes.ts";
import type { Sink } from "./sinks.ts";

/** Takes sends where Herald's gateway would. */
export type SendFloor = { readonly gateway: string; readonly processes: { readonly floor: number } };

/** Runs `send-floor.ts`, which pushes to the sink where there is one, for as long as the work takes. */
export const besideFloor = async <T>(sink: Sink | undefined, work: (floor: SendFloor) => Promise<T>): Promise<T> => {
  const child = sink
    ? start("bench/src/send-floor.ts", [sink.url], { BENCH_CA: sink.ca })
    : start("bench/src/send-floor.ts");
  try {
    const { url, pid } = await firstLine<{ url: string; pid: number }>(child);
    return await work({ gateway: url, processes: { floor: pid } });
  } finally {
    await end(child);
  }
};
