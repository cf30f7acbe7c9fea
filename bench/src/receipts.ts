import type { System } from "./herald.ts";
import { firstLine, start } from "./processes.ts";

export type ReceiptLoad = {
  readonly gateway: string;
  readonly mongoUrl: string;
  readonly projectId: string;
  /** The time that the broadcast takes, and the time in which a device reports a push of it. */
  readonly seconds: readonly [number, number];
};

/** The receipts of a broadcast from all capable devices of the project, in a separate process. */
export type Receipts = {
  readonly devices: number;
  readonly begin: (notification: string) => void;
  /** Resolves when every receipt is answered. */
  readonly statuses: Promise<Readonly<Record<string, number>>>;
};

/** Prepares receipts, so that their preparation is not part of the measurement. */
export const prepareReceipts = async (system: System, seconds: ReceiptLoad["seconds"]): Promise<Receipts> => {
  const load: ReceiptLoad = {
    gateway: system.gateway,
    mongoUrl: system.mongoUrl,
    projectId: system.project.id,
    seconds,
  };
  const child = start("bench/src/receipt-load.ts", [JSON.stringify(load)], { BENCH_OPEN_KEYS: system.openKeys });
  const devices = await firstLine<number>(child);
  return {
    devices,
    begin: (notification) => child.stdin?.write(`${notification}\n`),
    statuses: firstLine<{ statuses: Record<string, number> }>(child).then(({ statuses }) => statuses),
  };
};
