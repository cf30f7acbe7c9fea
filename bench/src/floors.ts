import type { ChildProcess } from "node:child_process";
import { end, firstLine, start } from "./processes.ts";
import type { Sink } from "./sinks.ts";

/** Takes requests where Herald's gateway would. */
export type SendFloor = { readonly gateway: string; readonly processes: { readonly floor: number } };

const beside = async <T>(child: ChildProcess, work: (floor: SendFloor) => Promise<T>): Promise<T> => {
  try {
    const { url, pid } = await firstLine<{ url: string; pid: number }>(child);
    return await work({ gateway: url, processes: { floor: pid } });
  } finally {
    await end(child);
  }
};

/** Runs `send-floor.ts`, which pushes to the sink where there is one, for as long as the work takes. */
export const besideFloor = <T>(sink: Sink | undefined, work: (floor: SendFloor) => Promise<T>): Promise<T> =>
  beside(
    sink ? start("bench/src/send-floor.ts", [sink.url], { BENCH_CA: sink.ca }) : start("bench/src/send-floor.ts"),
    work,
  );

/** Runs `register-floor.ts` on a database of its own for as long as the work takes. */
export const besideRegisterFloor = <T>(mongoUrl: string, work: (floor: SendFloor) => Promise<T>): Promise<T> =>
  beside(start("bench/src/register-floor.ts", [mongoUrl]), work);
