import { setTimeout as delay } from "node:timers/promises";
import type { Sender } from "./herald.ts";
import { countedBy, markedFrom, type Sink } from "./sinks.ts";
import { until } from "./until.ts";

/** Sends to one device at a steady pace, while other work runs. */
export type Probe = { readonly sender: Sender; readonly device: string; readonly everyMs: number };

let marks = 0;

/** Sends to one device as long as `more` returns true. Resolves to the time of each from the POST to the push at the sink, in ms. */
export const probe = async (
  sink: Sink,
  { sender, device, everyMs }: Probe,
  more: (sent: number) => boolean,
): Promise<number[]> => {
  const sentAt = new Map<string, number>();
  const sends: Promise<unknown>[] = [];
  for (let sent = 0; more(sent); sent++) {
    await delay(everyMs);
    const title = `mark ${++marks}`;
    sentAt.set(title, Date.now());
    sends.push(sender.post({ title, body: "x".repeat(markedFrom), targets: [`device:${device}`], ttl: 3600 }));
  }
  await Promise.all(sends);
  const marked = await until("each direct send at the sink", async () => {
    const counted = await countedBy(sink);
    return [...sentAt.keys()].every((title) => counted.marked[title] !== undefined) ? counted.marked : undefined;
  });
  return [...sentAt].map(([title, at]) => (marked[title] ?? 0) - at);
};
