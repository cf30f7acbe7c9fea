import type { ChildProcess } from "node:child_process";
import { end, firstLine, start } from "./processes.ts";
import type { Sink } from "./sinks.ts";

/** A server that takes requests in place of Herald's gateway. */
export type SendFloor = { readonly gateway: string; readonly processes: { readonly floor: number } };

const beside = async <T>(child: ChildProcess, work: (floor: SendFloor) => Promise<T>): Promise<T> => {
  try {
    const { url, pid } = await firstLine<{ url: string; pid: number }>(child);
    return await work({ gateway: url, processes: { floor: pid } });
  } finally {
    await end(child);
  }
};

/** Runs `send-floor.ts` during the work. It pushes to the sink if one is given. */
export const besideFloor = <T>(sink: Sink | undefined, work: (floor: SendFloor) => Promise<T>): Promise<T> =>
  beside(
    sink ? start("bench/src/send-floor.ts", [sink.url], { BENCH_CA: sink.ca }) : start("bench/src/send-floor.ts"),
    work,
  );

/** Runs `register-floor.ts` with its own database during the work. */
export const besideRegisterFloor = <T>(mongoUrl: string, work: (floor: SendFloor) => Promise<T>): Promise<T> =>
  beside(start("bench/src/register-floor.ts", [mongoUrl]), work);
