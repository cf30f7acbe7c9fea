import { setTimeout as delay } from "node:timers/promises";
import { besideFloor } from "../floors.ts";
import type { Sender } from "../herald.ts";
import type { Row } from "../row.ts";
import { pushed, resetSink, type Sink } from "../sinks.ts";
import { percentile, type Table } from "../table.ts";

/** Enough for a 99th percentile. */
export const samples = 200;
const warmUp = 30;
/** Pause between two sends, after which the first is complete, including its ledger. */
const pauseMs = 50;
const pollMs = 5;

/** Times from the POST to the push in ms, one send after the other. */
export const latencies = async (sink: Sink, count: number, send: () => Promise<unknown>): Promise<number[]> => {
  const took: number[] = [];
  for (let index = 0; index < count; index++) {
    await resetSink(sink);
    const begin = Date.now();
    await send();
    took.push((await pushed(sink, 1, pollMs)).lastAt - begin);
    await delay(pauseMs);
  }
  return took;
};

const notification = (target: string) => ({ title: "Hello", body: "World", targets: [target], ttl: 3600 });

/** One send at a time to one device: as a `device:` target, beside the floor, and by its own topic, which must be expanded. */
export const latencyRow: Row = {
  name: "latency",
  about: "POST to push with nothing else going on, of a send to a device and of one to a topic of one device",
  async *measure({ system, sinks, runs }) {
    const sink = sinks.apns;
    const [device = ""] = await system.seed("apns", "one-device", 1);
    const toFloor = (gateway: string) => async () => {
      const body = JSON.stringify({ notification: notification(`device:${device}`) });
      const headers = { "content-type": "application/json" };
      // Plain fetch, because the floor's answers are not those of Herald.
      const { ok, status } = await fetch(`${gateway}/api/v1/notifications`, { method: "POST", headers, body });
      if (!ok) throw new Error(`the floor answered ${status}`);
    };
    const toTarget = (sender: Sender, target: string) => () => sender.post(notification(target));
    const floor: number[][] = [];
    const direct: number[][] = [];
    const topic: number[][] = [];
    await besideFloor(sink, async ({ gateway }) => {
      const measured = [
        [floor, toFloor(gateway)],
        [direct, toTarget(system, `device:${device}`)],
        [topic, toTarget(system, "topic:one-device")],
      ] as const;
      for (const [, send] of measured) await latencies(sink, warmUp, send);
      for (let run = 0; run < runs; run++)
        for (const [took, send] of measured) took.push(await latencies(sink, samples, send));
    });
    const at = (percent: number, all: readonly number[][]) => all.map((took) => percentile(took, percent));
    const title = (to: string) => `From POST to push, at rest: ${to}`;
    const toDevice: Table = {
      title: title("a device"),
      lines: [
        { label: "p50 ms", values: at(50, direct), figure: "latency-p50" },
        { label: "p99 ms", values: at(99, direct), figure: "latency-p99" },
        { label: "floor, p50 ms", values: at(50, floor) },
        { label: "floor, p99 ms", values: at(99, floor) },
      ],
    };
    yield toDevice;
    yield {
      title: title("a topic of one device"),
      lines: [
        { label: "p50 ms", values: at(50, topic) },
        { label: "p99 ms", values: at(99, topic) },
      ],
    };
  },
};
