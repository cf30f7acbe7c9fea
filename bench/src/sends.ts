import { once } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import type { System } from "./herald.ts";
import { firstLine, start } from "./processes.ts";

/** What became of a load of single sends. */
export type Sent = {
  readonly seconds: number;
  readonly statuses: Readonly<Record<string, number>>;
  /** Until each was answered, in ms, from when it was due; none without a pace. */
  readonly latencies: number[];
};

export type SendLoad = {
  readonly gateway: string;
  readonly token: string;
  readonly count: number;
  /** Sends a second; absent: as fast as they are answered. */
  readonly pace?: number;
  /** One after the other; absent: a topic without devices. */
  readonly targets?: readonly string[];
};

const pollMs = 200;

/** Sends single notifications and waits until each is accepted. Throws where one is not. */
export const sends = async ({
  gateway,
  token,
  count,
  pace = 0,
  targets = ["topic:nobody"],
}: SendLoad): Promise<Sent> => {
  const child = start("bench/src/send-load.ts", [gateway, token, String(count), String(pace), targets.join()]);
  const sent = await firstLine<Sent>(child);
  if (child.exitCode === null) await once(child, "exit");
  if (sent.statuses["202"] !== count)
    throw new Error(`${count} sends were answered ${JSON.stringify(sent.statuses)}: all must be accepted`);
  return sent;
};

/** Until all that was sent is done: one more, behind them, is. */
export const drained = async (system: System): Promise<void> => {
  const id = await system.send("nobody");
  while ((await system.progress(id).catch(() => ({ status: "" }))).status !== "completed") await delay(pollMs);
};
