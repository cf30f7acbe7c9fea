import type { System } from "./herald.ts";
import { firstLine, start } from "./processes.ts";
import type { Sink } from "./sinks.ts";

export type ReceiptLoad = {
  readonly gateway: string;
  readonly mongoUrl: string;
  readonly projectId: string;
  /** Counts the pushes: a device reports after its push. */
  readonly sink: Sink;
  /** A device reports at random within this time after its push. */
  readonly seconds: number;
};

/** `cpuSeconds`: of the load itself, from the first receipt to the last answer. */
export type Received = { readonly statuses: Readonly<Record<string, number>>; readonly cpuSeconds: number };

/** The receipts of a broadcast from all capable devices of the project, in a separate process. */
export type Receipts = {
  readonly devices: number;
  readonly begin: (notification: string) => void;
  /** Resolves when every receipt is answered. */
  readonly received: Promise<Received>;
};

/** Prepares receipts, so that their preparation is not part of the measurement. */
export const prepareReceipts = async (system: System, sink: Sink, seconds: number): Promise<Receipts> => {
  const load: ReceiptLoad = {
    gateway: system.gateway,
    mongoUrl: system.mongoUrl,
    projectId: system.project.id,
    sink,
    seconds,
  };
  const child = start("bench/src/receipt-load.ts", [JSON.stringify(load)], { BENCH_OPEN_KEYS: system.openKeys });
  const devices = await firstLine<number>(child);
  return {
    devices,
    begin: (notification) => child.stdin?.write(`${notification}\n`),
    received: firstLine<Received>(child),
  };
};
